// Q3_K: 256 elements in 110 bytes, 16 groups of 16. x = d * (s - 32) * (q - 4) with s of the
// element's group.
//   byte  0  the third bit of q of element 32 b + l (b < 8, l < 32): bit b of byte l
//        32  the low two bits of element 128 h + 32 k + l (h < 2, k < 4): bits 2k, 2k + 1 of byte
//            32 h + l
//        96  the low four bits of s of groups g and g + 8 in the low and high half of byte g < 8
//       104  the high two bits of s of group g: bits 2 (g / 4), 2 (g / 4) + 1 of byte g % 4
//       108  d, f16
#pragma once

#include <cstdint>

#include "quant/dequantize.h"
#include "tensor/dtype.h"

namespace dunlin {

struct BlockQ3K {
  static constexpr DType kDType = DType::kQ3_K;
  static constexpr int kSize = 256;

  std::uint8_t hmask[32];
  std::uint8_t qs[64];
  std::uint8_t scales[12];
  std::uint16_t d;

  // s of group g, from 0 to 63.
  int scale(int g) const {
    const int low = g < 8 ? scales[g] & 0xF : scales[g - 8] >> 4;
    return low | (scales[8 + g % 4] >> (g / 4 * 2) & 3) << 4;
  }
};
static_assert(sizeof(BlockQ3K) == 110);

// out [256]
inline void dequantize_block(const BlockQ3K& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int g = 0; g < 16; ++g) {
    const float scale = d * static_cast<float>(block.scale(g) - 32);
    const int first = g % 2 * 16, shift = g / 2 % 4 * 2;
    const std::uint8_t* qs = block.qs + g / 8 * 32;
    for (int l = first; l < first + 16; ++l) {
      const int q = (qs[l] >> shift & 3) | (block.hmask[l] >> (g / 2) & 1) << 2;
      out[32 * (g / 2) + l] = scale * static_cast<float>(q - 4);
    }
  }
}

}  // namespace dunlin
