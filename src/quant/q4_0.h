// Q4_0: 32 elements in 18 bytes. x = d * (q - 8).
//   byte  0  d, f16
//         2  q of element j in the low, of element j + 16 in the high four bits of byte j
#pragma once

#include <cstdint>

#include "quant/dequantize.h"
#include "tensor/dtype.h"

namespace dunlin {

struct BlockQ4_0 {
  static constexpr DType kDType = DType::kQ4_0;
  static constexpr int kSize = 32;

  std::uint16_t d;
  std::uint8_t qs[16];
};
static_assert(sizeof(BlockQ4_0) == 18);

// out [32]
inline void dequantize_block(const BlockQ4_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * static_cast<float>((block.qs[j] & 0xF) - 8);
    out[j + 16] = d * static_cast<float>((block.qs[j] >> 4) - 8);
  }
}

}  // namespace dunlin
