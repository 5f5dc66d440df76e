// Q5_K: 256 elements in 176 bytes, 8 groups of 32. x = d * s * q - dmin * m with s and m of the
// element's group (quant/k_scales.h).
//   byte  0  d, f16
//         2  dmin, f16
//         4  s and m of the groups
//        16  the fifth bit of q of element 32 g + l: bit g of byte l
//        48  the low four bits of element 64 p + l in the low, of 64 p + 32 + l in the high half of
//            byte 32 p + l
#pragma once

#include <cstdint>

#include "quant/dequantize.h"
#include "quant/k_scales.h"
#include "tensor/dtype.h"

namespace dunlin {

struct BlockQ5K {
  static constexpr DType kDType = DType::kQ5_K;
  static constexpr int kSize = 256;

  std::uint16_t d;
  std::uint16_t dmin;
  std::uint8_t scales[12];
  std::uint8_t qh[32];
  std::uint8_t qs[128];
};
static_assert(sizeof(BlockQ5K) == 176);

// out [256]
inline void dequantize_block(const BlockQ5K& block, float* out) {
  const float d = f16_to_f32(block.d), dmin = f16_to_f32(block.dmin);
  for (int g = 0; g < 8; ++g) {
    const KScale k = k_scale(block.scales, g);
    const float scale = d * static_cast<float>(k.scale), min = dmin * static_cast<float>(k.min);
    const std::uint8_t* qs = block.qs + g / 2 * 32;
    const int shift = g % 2 * 4;
    for (int l = 0; l < 32; ++l) {
      const int q = (qs[l] >> shift & 0xF) | (block.qh[l] >> g & 1) << 4;
      out[32 * g + l] = scale * static_cast<float>(q) - min;
    }
  }
}

}  // namespace dunlin
