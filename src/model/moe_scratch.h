// The memory of a mixture of experts, one for all layers. A pair is a token and one of its experts.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/gemm.h"
#include "model/config.h"
#include "tensor/buffer.h"

namespace dunlin {

struct MoeScratch {
  // Nothing where the model has no experts.
  void reserve(const MoeConfig& config, int hidden_size, std::int64_t max_tokens, bool keep_float);

  // What reserve() takes.
  static std::int64_t reserved_bytes(const MoeConfig& config, int hidden_size,
                                     std::int64_t max_tokens, bool keep_float);

  std::vector<float> router_logits;      // [max_tokens, num_experts]
  std::vector<float> shared_gate;        // [max_tokens]
  std::vector<std::int32_t> chosen;      // [max_tokens, experts_per_token] experts, ascending
  std::vector<float> weights;            // the same: theirs
  std::vector<std::int32_t> pair_of;     // the same: the place of each among the sorted pairs
  std::vector<std::int32_t> token_of;    // [pairs] sorted by expert, then by token
  std::vector<std::int32_t> rows;        // [pairs] 0, 1, ...
  std::vector<std::int32_t> first_pair;  // [num_experts + 1] of each expert
  std::vector<GemmTask> tasks;
  Buffer gate_up;    // [pairs, 2 ffn_size]
  Activations acts;  // [pairs] rows of ffn_size, the inputs of the experts' last matrices
  Buffer out;        // [pairs, hidden_size]
};

}  // namespace dunlin
