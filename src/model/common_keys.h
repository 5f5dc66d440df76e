// What the keys of a layer have in common, which need not be stored: a softmax does not see a
// number that is added to all of its scores, so attention over k - c is attention over k (the key
// smoothing of Zhang et al., "SageAttention", 2025).
//
// Qwen2's biases of keys are a hundred times what tells keys apart; a format of few bits that has
// to span them has none left for the rest. RoPE turns the bias with the position, but its slow
// pairs, where the large biases are, stay within a radian over the model's context: c is the bias
// in them, and 0 in the others.
#pragma once

#include <vector>

#include "kernels/rope.h"
#include "model/config.h"
#include "model/weights.h"

namespace dunlin {

// [kv_size], after RoPE; empty where the layer has no such part, or where sinks or a softcap make
// scores more than a softmax's. rope: of the layer, or null; style: of its pairs.
std::vector<float> common_keys(const ModelConfig& config, const LayerWeights& layer,
                               const RopeFrequencies* rope, RopeStyle style);

}  // namespace dunlin
