// Multi-head latent attention (DeepSeek-AI, "DeepSeek-V2: A strong, economical, and efficient
// mixture-of-experts language model", 2024), always in its absorbed form: the cache holds a token's
// latent c and one rotated key r for all heads, and head h computes
//
//   q, p = its parts of q_proj(x) without and with positions, or of q_b(norm(q_a(x)))
//   scores = scale * (k_b[h] q . c + rope(p) . r)
//   output = v_b[h] (softmax(scores) c)
//
// which is what keys k_b[h]^T c and values v_b[h] c would give. One arithmetic for every token,
// however many the step has of its sequence.
#pragma once

#include "model/step.h"

namespace dunlin {

// A block as attend() in layers.h: from scratch.acts to scratch.attn_out, the token's latent and
// rotated key into the cache.
void attend_latent(Step& step, const LayerWeights& weights, int layer_idx);

}  // namespace dunlin
