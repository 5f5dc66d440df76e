// Q6_K: 256 elements in 210 bytes, 16 groups of 16. x = d * s * (q - 32) with s of the element's
// group.
//   byte  0  the low four bits of element 128 h + l in the low, of 128 h + 64 + l in the high half
//            of byte 64 h + l (h < 2, l < 64)
//       128  the high two bits of element 128 h + 32 k + l (k < 4, l < 32): bits 2k, 2k + 1 of byte
//            32 h + l
//       192  s of group g, signed, in byte g
//       208  d, f16
#pragma once

#include <cstdint>

#include "quant/dequantize.h"
#include "tensor/dtype.h"

namespace dunlin {

struct BlockQ6K {
  static constexpr DType kDType = DType::kQ6_K;
  static constexpr int kSize = 256;

  std::uint8_t ql[128];
  std::uint8_t qh[64];
  std::int8_t scales[16];
  std::uint16_t d;
};
static_assert(sizeof(BlockQ6K) == 210);

// out [256]
inline void dequantize_block(const BlockQ6K& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int g = 0; g < 16; ++g) {
    const float scale = d * static_cast<float>(block.scales[g]);
    const std::uint8_t* ql = block.ql + g / 8 * 64 + g % 4 * 16;
    const std::uint8_t* qh = block.qh + g / 8 * 32 + g % 2 * 16;
    const int low_shift = g % 8 / 4 * 4, high_shift = g % 8 / 2 * 2;
    for (int l = 0; l < 16; ++l) {
      const int q = (ql[l] >> low_shift & 0xF) | (qh[l] >> high_shift & 3) << 4;
      out[16 * g + l] = scale * static_cast<float>(q - 32);
    }
  }
}

}  // namespace dunlin
