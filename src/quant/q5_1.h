// Q5_1: 32 elements in 24 bytes. x = d * q + m.
//   byte  0  d, f16
//         2  m, f16
//         4  bit j: the fifth bit of q of element j
//         8  the low four bits of element j in the low, of j + 16 in the high half of byte j
#pragma once

#include <cstdint>

#include "quant/dequantize.h"
#include "tensor/dtype.h"

namespace dunlin {

struct BlockQ5_1 {
  static constexpr DType kDType = DType::kQ5_1;
  static constexpr int kSize = 32;

  std::uint16_t d;
  std::uint16_t m;
  std::uint8_t qh[4];
  std::uint8_t qs[16];
};
static_assert(sizeof(BlockQ5_1) == 24);

// out [32]
inline void dequantize_block(const BlockQ5_1& block, float* out) {
  const float d = f16_to_f32(block.d), m = f16_to_f32(block.m);
  for (int j = 0; j < 16; ++j) {
    const int low = (block.qs[j] & 0xF) | (block.qh[j / 8] >> (j % 8) & 1) << 4;
    const int high = (block.qs[j] >> 4) | (block.qh[2 + j / 8] >> (j % 8) & 1) << 4;
    out[j] = d * static_cast<float>(low) + m;
    out[j + 16] = d * static_cast<float>(high) + m;
  }
}

}  // namespace dunlin
