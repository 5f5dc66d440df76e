// IQ4_XS: 256 elements in 136 bytes, 8 groups of 32. x = d * (s - 32) * kIq4Values[q] with s of the
// element's group.
//   byte  0  d, f16
//         2  the high two bits of s of group g: bits 2g, 2g + 1
//         4  the low four bits of s of group g: the low (g even) or high half of byte g / 2
//         8  q of element 32 g + j in the low, of 32 g + 16 + j in the high half of byte 16 g + j
#pragma once

#include <cstdint>

#include "quant/dequantize.h"
#include "quant/iq4_values.h"
#include "tensor/dtype.h"

namespace dunlin {

struct BlockIq4Xs {
  static constexpr DType kDType = DType::kIQ4_XS;
  static constexpr int kSize = 256;

  std::uint16_t d;
  std::uint16_t scales_high;
  std::uint8_t scales_low[4];
  std::uint8_t qs[128];

  // s of group g, from 0 to 63.
  int scale(int g) const {
    return (scales_low[g / 2] >> (g % 2 * 4) & 0xF) | (scales_high >> (2 * g) & 3) << 4;
  }
};
static_assert(sizeof(BlockIq4Xs) == 136);

// out [256]
inline void dequantize_block(const BlockIq4Xs& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int g = 0; g < 8; ++g) {
    const float scale = d * static_cast<float>(block.scale(g) - 32);
    const std::uint8_t* qs = block.qs + 16 * g;
    for (int j = 0; j < 16; ++j) {
      out[32 * g + j] = scale * static_cast<float>(kIq4Values[qs[j] & 0xF]);
      out[32 * g + j + 16] = scale * static_cast<float>(kIq4Values[qs[j] >> 4]);
    }
  }
}

}  // namespace dunlin
