#include "kv/kv_storage.h"

#include <cstring>

#include "base/check.h"

namespace dunlin {

static_assert(kBlockSize == kKvBlockSize, "kernels and bookkeeping must agree on a block");

KvStorage::KvStorage(const KvLayout& layout, std::int32_t num_blocks)
    : layout_(layout),
      num_blocks_(num_blocks),
      arena_(static_cast<std::size_t>(num_blocks) * static_cast<std::size_t>(layout.block_bytes())),
      bounds_(static_cast<std::size_t>(num_blocks * layout.block_bounds_bytes())),
      bounds_known_(static_cast<std::size_t>(num_blocks) *
                    static_cast<std::size_t>(layout.layers_per_block)) {
  DUNLIN_CHECK(num_blocks > 0, "a KV cache has blocks");
}

PagedKvLayer KvStorage::layer(int layer_idx) {
  const KvLayerPlace& place = layout_.places.at(static_cast<std::size_t>(layer_idx));
  const std::int64_t layer_bytes = kBlockSize * layout_.layer_bytes_per_token();
  PagedKvLayer view;
  view.base = arena_.data();
  view.block_stride = layout_.block_bytes();
  view.k_offset = place.layer_in_block * layer_bytes;
  view.v_offset = view.k_offset + kBlockSize * layout_.layer_key_bytes_per_token();
  view.num_kv_heads = layout_.num_kv_heads;
  view.head_dim_k = layout_.head_dim_k;
  view.head_dim_v = layout_.head_dim_v;
  view.k = layout_.key_part();
  view.v = layout_.value_part();
  view.values_in_keys = layout_.values_in_keys;
  view.window = layout_.groups[static_cast<std::size_t>(place.group_idx)].window;
  return view;
}

PageBounds KvStorage::page_bounds(int layer_idx) {
  const std::int64_t first =
      std::int64_t{layout_.places.at(static_cast<std::size_t>(layer_idx)).layer_in_block} *
      num_blocks_;
  const std::int64_t block = layout_.block_bounds_bytes() / layout_.layers_per_block;
  return {reinterpret_cast<std::uint16_t*>(bounds_.data() + first * block),
          bounds_known_.data() + first};
}

void KvStorage::note_writes(std::span<const std::int64_t> slots) {
  std::int64_t last = -1;
  for (const std::int64_t slot : slots) {
    if (slot / kBlockSize == last) continue;
    last = slot / kBlockSize;
    forget_bounds(static_cast<std::int32_t>(last));
  }
}

void KvStorage::forget_bounds(std::int32_t block_id) {
  for (std::size_t i = static_cast<std::size_t>(block_id); i < bounds_known_.size();
       i += static_cast<std::size_t>(num_blocks_))
    bounds_known_[i] = 0;
}

std::byte* KvStorage::block(std::int32_t block_id) {
  DUNLIN_CHECK(block_id >= 0 && block_id < num_blocks_, "no such KV block");
  forget_bounds(block_id);
  return arena_.data() + block_id * block_bytes();
}

void KvStorage::copy_block(std::int32_t from, std::int32_t to) {
  if (from == to) return;
  std::memcpy(block(to), block(from), static_cast<std::size_t>(block_bytes()));
}

}  // namespace dunlin
