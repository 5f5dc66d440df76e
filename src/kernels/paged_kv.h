// The KV cache of one layer as attention kernels see it: bytes and a block table. Non-owning.
//
// A block b of the arena begins at base + b * block_stride. Inside it, this layer's keys are at
// k_offset and its values at v_offset, laid out as kv_format.h says: keys dimension-major (a vector
// of 16 tokens for each dimension), values token-major. Strides and offsets in bytes. A slot is
// block * 16 + position in block.
//
// Latent attention caches one vector a token (DeepSeek-AI, "DeepSeek-V2", 2024): its values are the
// first head_dim_v dimensions of its keys, and nothing is stored at v_offset.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/kv_format.h"

namespace dunlin {

struct PagedKvLayer {
  std::byte* base = nullptr;
  std::int64_t block_stride = 0;
  std::int64_t k_offset = 0;
  std::int64_t v_offset = 0;
  int num_kv_heads = 0;
  int head_dim_k = 0;
  int head_dim_v = 0;
  KvPart k;  // key_part() of the format and the sizes above
  KvPart v;  // value_part(); unused where values_in_keys
  bool values_in_keys = false;
  int window = 0;  // 0: full attention
};

}  // namespace dunlin
