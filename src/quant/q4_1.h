// Q4_1: 32 elements in 20 bytes. x = d * q + m.
//   byte  0  d, f16
//         2  m, f16
//         4  q of element j in the low, of element j + 16 in the high four bits of byte j
#pragma once

#include <cstdint>

#include "quant/dequantize.h"
#include "tensor/dtype.h"

namespace dunlin {

struct BlockQ4_1 {
  static constexpr DType kDType = DType::kQ4_1;
  static constexpr int kSize = 32;

  std::uint16_t d;
  std::uint16_t m;
  std::uint8_t qs[16];
};
static_assert(sizeof(BlockQ4_1) == 20);

// out [32]
inline void dequantize_block(const BlockQ4_1& block, float* out) {
  const float d = f16_to_f32(block.d), m = f16_to_f32(block.m);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * static_cast<float>(block.qs[j] & 0xF) + m;
    out[j + 16] = d * static_cast<float>(block.qs[j] >> 4) + m;
  }
}

}  // namespace dunlin
