// What one token costs in KV memory and which layers share a block table. One description, made
// once from the model's config, that the model, the storage, the manager, `inspect` and the
// memory planner all use.
//
// One arena of equal blocks: a block holds kBlockSize tokens of `layers_per_block` layers. Layers
// with the same needs form a kind; each kind is cut into groups of layers_per_block layers (the
// greatest common divisor of the kinds' layer counts), and each group has its own block table.
// Gemma 3 270M: 15 window + 3 full layers -> 5 window groups and 1 full group of 3 layers each.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/kv_format.h"

namespace dunlin {

inline constexpr int kBlockSize = kKvBlockSize;  // tokens a block

enum class KvKind { kFull, kSlidingWindow };

struct KvGroup {
  KvKind kind = KvKind::kFull;
  int window = 0;           // tokens a query sees, itself included; 0 for kFull
  std::vector<int> layers;  // model layer indices, ascending, layers_per_block of them
};

// Where a layer's keys and values live.
struct KvLayerPlace {
  int group_idx = 0;
  int layer_in_block = 0;
};

struct KvLayout {
  int num_kv_heads = 0;
  int head_dim_k = 0;
  int head_dim_v = 0;
  KvFormats formats;
  bool values_in_keys = false;  // the first head_dim_v dimensions of the keys; none are stored
  int layers_per_block = 0;
  std::vector<KvGroup> groups;
  std::vector<KvLayerPlace> places;  // [num_layers]

  // window_of_layer[i]: 0 for full attention, else the window. All layers share head sizes.
  static KvLayout make(const std::vector<int>& window_of_layer, int num_kv_heads, int head_dim_k,
                       int head_dim_v, KvFormats formats);

  // The keys and the values of a layer in a block.
  KvPart key_part() const;
  KvPart value_part() const;

  // One token of one layer: stored keys, stored values, both.
  std::int64_t layer_key_bytes_per_token() const;
  std::int64_t layer_value_bytes_per_token() const;
  std::int64_t layer_bytes_per_token() const;
  std::int64_t block_bytes() const;  // kBlockSize tokens of layers_per_block layers
  // What is known of a block's keys where a policy selects pages (kernels/page_selection.h).
  std::int64_t block_bounds_bytes() const;
  // Layers of full attention; they come first in the groups, so layer i of group g is the
  // (g * layers_per_block + i)th of them.
  int num_full_layers() const;
  // A number for each slot of a block where a policy counts votes (kv/kv_votes.h).
  std::int64_t block_votes_bytes() const;
  // Blocks that a sequence of num_tokens holds over all groups, windows honoured.
  std::int64_t blocks_for(std::int64_t num_tokens) const;
  // KV bytes per token before any window is full: all layers. LLaMA-7B f16: 512 KiB.
  std::int64_t bytes_per_token() const;
};

}  // namespace dunlin
