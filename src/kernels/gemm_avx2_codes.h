// Unpacking of plane blocks (quant/panel_bits.h) with AVX2. Included by gemm_x86_avx2.cc only;
// everything has internal linkage.
#pragma once

#include <immintrin.h>

#include "kernels/gemm_avx2_scales.h"
#include "quant/panel_formats.h"

namespace dunlin {
namespace {

// Four bytes in every lane.
DUNLIN_INLINE __m256i broadcast32(const void* p) {
  return _mm256_castps_si256(_mm256_broadcast_ss(static_cast<const float*>(p)));
}

// Shifts bytes as if each were alone; `mask` drops what came from the neighbour. by > 0: left.
template <int by>
DUNLIN_INLINE __m256i shift(__m256i v) {
  if constexpr (by > 0) return _mm256_slli_epi16(v, by);
  if constexpr (by < 0) return _mm256_srli_epi16(v, -by);
  return v;
}
template <int by>
DUNLIN_INLINE __m256i shift_and(__m256i v, char mask) {
  return _mm256_and_si256(shift<by>(v), _mm256_set1_epi8(mask));
}

// Codes<Bits>(block).group<g, half>(): the codes of group g, rows 8 half .. 8 half + 7.
template <typename Bits>
struct Codes;

template <>
struct Codes<Bits4> {
  const std::byte* block;
  template <int g, int half>
  DUNLIN_INLINE __m256i group() const {
    return shift_and<g / 4 * -4>(load(block + g % 4 * 64 + 32 * half), 0x0f);
  }
};

template <>
struct Codes<Bits5> {
  const std::byte* block;
  template <int g, int half>
  DUNLIN_INLINE __m256i group() const {
    const __m256i high = shift_and<4 - g>(load(block + 256 + 32 * half), 0x10);
    return _mm256_or_si256(Codes<Bits4>{block}.template group<g, half>(), high);
  }
};

template <>
struct Codes<Bits6> {
  const std::byte* block;
  template <int g, int half>
  DUNLIN_INLINE __m256i group() const {
    const __m256i high = shift_and<4 - g % 4 * 2>(load(block + 256 + g / 4 * 64 + 32 * half), 0x30);
    return _mm256_or_si256(Codes<Bits4>{block}.template group<g, half>(), high);
  }
};

template <>
struct Codes<Bits2> {
  const std::byte* block;
  template <int g, int half>
  DUNLIN_INLINE __m256i group() const {
    return shift_and<g % 4 * -2>(load(block + g / 4 * 64 + 32 * half), 0x03);
  }
};

template <>
struct Codes<Bits3> {
  const std::byte* block;
  template <int g, int half>
  DUNLIN_INLINE __m256i group() const {
    const __m256i high = shift_and<2 - g>(load(block + 128 + 32 * half), 0x04);
    return _mm256_or_si256(Codes<Bits2>{block}.template group<g, half>(), high);
  }
};

template <>
struct Codes<Bits8> {
  const std::byte* block;
  template <int g, int half>
  DUNLIN_INLINE __m256i group() const {
    return load(block + g * 64 + 32 * half);
  }
};

template <>
struct Codes<BitsIq4> {
  const std::byte* block;
  template <int g, int half>
  DUNLIN_INLINE __m256i group() const {
    const __m256i values = _mm256_broadcastsi128_si256(load128(kIq4Values));
    return _mm256_shuffle_epi8(values, Codes<Bits4>{block}.template group<g, half>());
  }
};

}  // namespace
}  // namespace dunlin
