// The votes of one sequence's tokens (kernels/attention_votes.h), where its policy keeps some of
// them by votes: a number for each slot of each KV head in the layers of full attention. Slots
// without a token have none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/block_table.h"

namespace dunlin {

class KvVotes {
 public:
  bool is_empty() const { return sums_.empty(); }
  // No votes, for all slots.
  void reset(int num_layers, int num_kv_heads, int num_slots) {
    stride_ = std::int64_t{num_blocks_for(num_slots)} * kBlockSize;
    num_kv_heads_ = num_kv_heads;
    sums_.assign(static_cast<std::size_t>(num_layers * num_kv_heads * stride_), 0);
  }
  void clear() { sums_ = {}; }

  std::int64_t stride() const { return stride_; }
  // [num_kv_heads, stride]. Layers of full attention are counted by themselves.
  float* of_layer(int layer_idx) { return sums_.data() + layer_idx * num_kv_heads_ * stride_; }
  std::span<float> of_head(int layer_idx, int kv_head) {
    return {of_layer(layer_idx) + kv_head * stride_, static_cast<std::size_t>(stride_)};
  }

 private:
  std::vector<float> sums_;
  std::int64_t stride_ = 0;
  int num_kv_heads_ = 0;
};

}  // namespace dunlin
