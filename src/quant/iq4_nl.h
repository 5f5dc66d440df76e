// IQ4_NL: 32 elements in 18 bytes. x = d * kIq4Values[q].
//   byte  0  d, f16
//         2  q of element j in the low, of element j + 16 in the high four bits of byte j
#pragma once

#include <cstdint>

#include "quant/dequantize.h"
#include "quant/iq4_values.h"
#include "tensor/dtype.h"

namespace dunlin {

struct BlockIq4Nl {
  static constexpr DType kDType = DType::kIQ4_NL;
  static constexpr int kSize = 32;

  std::uint16_t d;
  std::uint8_t qs[16];
};
static_assert(sizeof(BlockIq4Nl) == 18);

// out [32]
inline void dequantize_block(const BlockIq4Nl& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * static_cast<float>(kIq4Values[block.qs[j] & 0xF]);
    out[j + 16] = d * static_cast<float>(kIq4Values[block.qs[j] >> 4]);
  }
}

}  // namespace dunlin
