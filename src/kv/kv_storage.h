// The bytes of the KV cache: one arena of equal blocks (KvLayout), given out by number. Owns the
// memory and nothing else: which block belongs to whom is kv_cache_manager's. Zero pages until
// written, so an unused pool costs address space only. Owned by the engine; written by the model's
// kernels between two of the engine's steps, so no locks.
//
// Inside a block, layer i of its group holds its keys and then its values, where values are stored,
// each laid out as tensor/kv_format.h says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/page_bounds.h"
#include "kernels/paged_kv.h"
#include "kv/kv_layout.h"
#include "tensor/buffer.h"

namespace dunlin {

class KvStorage {
 public:
  // Aborts where the system has no address space for num_blocks * block_bytes().
  KvStorage(const KvLayout& layout, std::int32_t num_blocks);

  const KvLayout& layout() const { return layout_; }
  std::int32_t num_blocks() const { return num_blocks_; }
  std::int64_t block_bytes() const { return layout_.block_bytes(); }

  // Model layer `layer_idx` as the attention kernels see it; valid while the storage lives.
  PagedKvLayer layer(int layer_idx);

  // What is known of the pages of a layer's keys (kernels/page_selection.h). Takes memory only
  // where somebody asks for it.
  PageBounds page_bounds(int layer_idx);
  // The blocks of these slots are about to be written.
  void note_writes(std::span<const std::int64_t> slots);
  // Of a block whose tokens are about to be moved.
  void forget_bounds(std::int32_t block_id);

  // Copy-on-write: block `to` becomes equal to block `from`, all its layers.
  void copy_block(std::int32_t from, std::int32_t to);

  // The raw bytes of a block, block_bytes() of them, for swapping out and for the disk tier.
  std::byte* block(std::int32_t block_id);

 private:
  KvLayout layout_;
  std::int32_t num_blocks_ = 0;

  Buffer arena_;
  Buffer bounds_;                           // [layers_per_block, num_blocks] as PageBounds has them
  std::vector<std::uint8_t> bounds_known_;  // the same
};

}  // namespace dunlin
