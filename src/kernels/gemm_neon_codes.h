// Unpacking of plane blocks (quant/panel_bits.h) with NEON. Included by gemm_arm_neon.cc only;
// everything has internal linkage.
#pragma once

#include <arm_neon.h>

#include "kernels/gemm_neon_scales.h"
#include "quant/panel_formats.h"

namespace dunlin {
namespace {

// by > 0: left.
template <int by>
DUNLIN_INLINE uint8x16_t shift(uint8x16_t v) {
  if constexpr (by > 0) return vshlq_n_u8(v, by);
  if constexpr (by < 0) return vshrq_n_u8(v, -by);
  return v;
}
template <int by>
DUNLIN_INLINE uint8x16_t shift_and(uint8x16_t v, std::uint8_t mask) {
  return vandq_u8(shift<by>(v), vdupq_n_u8(mask));
}

// Codes<Bits>(block).group<g, quarter>(): the codes of group g, rows 4 quarter .. 4 quarter + 3.
template <typename Bits>
struct Codes;

template <>
struct Codes<Bits4> {
  const std::byte* block;
  template <int g, int quarter>
  DUNLIN_INLINE uint8x16_t group() const {
    const uint8x16_t both = load(block + g % 4 * 64 + 16 * quarter);
    return g < 4 ? low_nibbles(both) : high_nibbles(both);
  }
};

template <>
struct Codes<Bits5> {
  const std::byte* block;
  template <int g, int quarter>
  DUNLIN_INLINE uint8x16_t group() const {
    const uint8x16_t high = shift_and<4 - g>(load(block + 256 + 16 * quarter), 0x10);
    return vorrq_u8(Codes<Bits4>{block}.template group<g, quarter>(), high);
  }
};

template <>
struct Codes<Bits6> {
  const std::byte* block;
  template <int g, int quarter>
  DUNLIN_INLINE uint8x16_t group() const {
    const uint8x16_t pairs = load(block + 256 + g / 4 * 64 + 16 * quarter);
    return vorrq_u8(Codes<Bits4>{block}.template group<g, quarter>(),
                    shift_and<4 - g % 4 * 2>(pairs, 0x30));
  }
};

template <>
struct Codes<Bits2> {
  const std::byte* block;
  template <int g, int quarter>
  DUNLIN_INLINE uint8x16_t group() const {
    return shift_and<g % 4 * -2>(load(block + g / 4 * 64 + 16 * quarter), 0x03);
  }
};

template <>
struct Codes<Bits3> {
  const std::byte* block;
  template <int g, int quarter>
  DUNLIN_INLINE uint8x16_t group() const {
    const uint8x16_t high = shift_and<2 - g>(load(block + 128 + 16 * quarter), 0x04);
    return vorrq_u8(Codes<Bits2>{block}.template group<g, quarter>(), high);
  }
};

template <>
struct Codes<Bits8> {
  const std::byte* block;
  template <int g, int quarter>
  DUNLIN_INLINE uint8x16_t group() const {
    return load(block + g * 64 + 16 * quarter);
  }
};

template <>
struct Codes<BitsIq4> {
  const std::byte* block;
  template <int g, int quarter>
  DUNLIN_INLINE uint8x16_t group() const {
    const uint8x16_t values = vreinterpretq_u8_s8(vld1q_s8(kIq4Values));
    return vqtbl1q_u8(values, Codes<Bits4>{block}.template group<g, quarter>());
  }
};

// Unpacked before: 64 bytes a group.
struct UnpackedCodes {
  static constexpr int kBlockBytes = 512;
  const std::byte* block;
  template <int g, int quarter>
  DUNLIN_INLINE uint8x16_t group() const {
    return load(block + g * 64 + 16 * quarter);
  }
};

}  // namespace
}  // namespace dunlin
