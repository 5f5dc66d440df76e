// Q2_K: 256 elements in 84 bytes, 16 groups of 16. x = d * s * q - dmin * m with s and m of the
// element's group.
//   byte  0  group g: s in the low, m in the high four bits of byte g
//        16  q of element 128 h + 32 k + l (h < 2, k < 4, l < 32): bits 2k, 2k + 1 of byte 32 h + l
//        80  d, f16
//        82  dmin, f16
#pragma once

#include <cstdint>

#include "quant/dequantize.h"
#include "tensor/dtype.h"

namespace dunlin {

struct BlockQ2K {
  static constexpr DType kDType = DType::kQ2_K;
  static constexpr int kSize = 256;

  std::uint8_t scales[16];
  std::uint8_t qs[64];
  std::uint16_t d;
  std::uint16_t dmin;
};
static_assert(sizeof(BlockQ2K) == 84);

// out [256]
inline void dequantize_block(const BlockQ2K& block, float* out) {
  const float d = f16_to_f32(block.d), dmin = f16_to_f32(block.dmin);
  for (int g = 0; g < 16; ++g) {
    const float scale = d * static_cast<float>(block.scales[g] & 0xF);
    const float min = dmin * static_cast<float>(block.scales[g] >> 4);
    const std::uint8_t* qs = block.qs + g / 8 * 32 + g % 2 * 16;
    const int shift = g / 2 % 4 * 2;
    for (int l = 0; l < 16; ++l) {
      out[16 * g + l] = scale * static_cast<float>(qs[l] >> shift & 3) - min;
    }
  }
}

}  // namespace dunlin
