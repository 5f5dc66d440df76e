// The weights of a loaded model, and the one list of its tensors: what a file is checked against
// and what the loader fills in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dunlin/status.h"
#include "formats/gguf.h"
#include "formats/weight_source.h"
#include "model/config.h"
#include "quant/packed_matrix.h"

namespace dunlin {

struct LinearWeights {
  PackedMatrix matrix;      // [out, in]
  std::vector<float> bias;  // [out], or empty

  const float* bias_data() const { return bias.empty() ? nullptr : bias.data(); }
};

struct LayerWeights {
  std::vector<float> attn_norm;  // [hidden_size]
  LinearWeights q, k, v, o;      // [q_size | kv_size | kv_size, hidden_size], [hidden_size, q_size]
  std::vector<float> q_norm, k_norm;  // [head_dim], or empty
  std::vector<float> post_attn_norm;  // [hidden_size], or empty
  std::vector<float> ffn_norm;        // [hidden_size]
  LinearWeights gate, up, down;       // [ffn_size, hidden_size] twice, [hidden_size, ffn_size]
  std::vector<float> post_ffn_norm;   // [hidden_size], or empty
};

struct Weights {
  LinearWeights token_embedding;    // [vocab_size, hidden_size]
  std::vector<float> output_norm;   // [hidden_size]
  LinearWeights head;               // [vocab_size, hidden_size]; empty where tied
  std::vector<float> rope_factors;  // [head_dim / 2 of RoPE 0], or empty
  std::vector<LayerWeights> layers;
};

// One tensor: its canonical name, its shape, and where it goes. Exactly one target is set.
struct TensorSlot {
  std::string name;
  std::int64_t rows = 1;  // 1 for vectors
  std::int64_t cols = 0;
  PackedMatrix* matrix = nullptr;
  std::vector<float>* vector = nullptr;
};

// Sizes `weights.layers` and lists every tensor of the model, in the order a file has them.
// The slots point into `weights`.
std::vector<TensorSlot> tensor_slots(const ModelConfig& config, Weights& weights);

// Whether `source` has every tensor of the model with its shape and a type that can be computed
// with. Reads no weights. The message names the tensor.
Outcome check_tensors(const ModelConfig& config, const WeightSource& source);

// The same for a file, which also must not have tensors that the model would ignore: they would
// have changed its results.
Outcome check_tensors(const ModelConfig& config, const GgufFile& file);

}  // namespace dunlin
