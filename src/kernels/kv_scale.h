// The word of a group of codes (tensor/kv_format.h). Everything has internal linkage: per-ISA files
// include it.
#pragma once

#include <cstdint>

#include "tensor/kv_format.h"

namespace dunlin {
namespace {

struct KvScale {
  float scale, zero;
};

// int4: the scale's bits are five of the exponent and five of the mantissa, from 2^-20 to 2^12.
constexpr int kInt4ScaleShift = 18;
constexpr std::uint32_t kInt4ScaleBase = 107u << 23;

inline float kv_float_of(std::uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

inline KvScale kv_scale(KvFormat format, std::uint16_t word) {
  if (format == KvFormat::kInt8) return {kv_float_of(std::uint32_t{word} << 16), 128.0f};
  const float scale = kv_float_of((std::uint32_t{word} >> 6 << kInt4ScaleShift) + kInt4ScaleBase);
  return {scale, static_cast<float>(word & 63) * 0.25f};
}

// The least scale that is not below x >= 0; the greatest where there is none; 0 for next to
// nothing.
inline std::uint32_t kv_int4_scale_bits(float x) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  constexpr std::uint32_t kMost = 1023;
  if (bits <= kInt4ScaleBase) return 0;
  const std::uint32_t above =
      (bits - kInt4ScaleBase + (1u << kInt4ScaleShift) - 1) >> kInt4ScaleShift;
  return above < kMost ? above : kMost;
}

}  // namespace
}  // namespace dunlin
