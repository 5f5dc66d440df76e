// Q8_0: 32 elements in 34 bytes. x = d * q.
//   byte  0  d, f16
//         2  q of element j, signed, in byte j
#pragma once

#include <cstdint>

#include "quant/dequantize.h"
#include "tensor/dtype.h"

namespace dunlin {

struct BlockQ8_0 {
  static constexpr DType kDType = DType::kQ8_0;
  static constexpr int kSize = 32;

  std::uint16_t d;
  std::int8_t qs[32];
};
static_assert(sizeof(BlockQ8_0) == 34);

// out [32]
inline void dequantize_block(const BlockQ8_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(block.qs[j]);
}

}  // namespace dunlin
