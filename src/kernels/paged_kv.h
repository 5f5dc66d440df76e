// The KV cache of one layer as attention kernels see it: bytes and a block table. Non-owning.
//
// A block b of the arena begins at base + b * block_stride. Inside it, this layer's keys are at
// k_offset as [num_kv_heads, head_dim_k, kKvBlockSize] (dimension-major: a vector of 16 tokens for
// each dimension) and its values at v_offset as [num_kv_heads, kKvBlockSize, head_dim_v].
// Strides and offsets in bytes. A slot is block * 16 + position in block.
//
// Latent attention caches one vector a token (DeepSeek-AI, "DeepSeek-V2", 2024): its values are the
// first head_dim_v dimensions of its keys, and nothing is stored at v_offset.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace dunlin {

inline constexpr int kKvBlockSize = 16;

struct PagedKvLayer {
  std::byte* base = nullptr;
  std::int64_t block_stride = 0;
  std::int64_t k_offset = 0;
  std::int64_t v_offset = 0;
  int num_kv_heads = 0;
  int head_dim_k = 0;
  int head_dim_v = 0;
  DType dtype_k = DType::kF16;  // F32, F16 or BF16
  DType dtype_v = DType::kF16;
  bool values_in_keys = false;
  int window = 0;  // 0: full attention
};

}  // namespace dunlin
