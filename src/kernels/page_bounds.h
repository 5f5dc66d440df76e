// What is known of the pages of one layer: for each KV head of a full block the greatest and least
// of each dimension of its keys. Non-owning.
#pragma once

#include <cstdint>

namespace dunlin {

struct PageBounds {
  std::uint16_t* base = nullptr;     // [num_blocks, num_kv_heads, stride] halves: max, min, zeros
  std::uint8_t* is_known = nullptr;  // [num_blocks] whether they are those of what the block holds

  static constexpr std::int64_t stride(int head_dim_k) { return (2 * head_dim_k + 15) / 16 * 16; }
};

}  // namespace dunlin
