// The AVX-512 VNNI micro-kernels: 16 rows x T tokens over the blocks of a strip. Included by
// gemm_x86_avx512.cc only.
//
// A group of four columns is one vector: dpbusd multiplies its unsigned codes by four activations
// in every lane and adds into int32, where nothing can overflow. Signed bytes become unsigned by
// adding 128. A sum starts at minus the zero point's share, zero point x sum of the activations.
#pragma once

#ifdef DUNLIN_SIMDE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#endif
#include <immintrin.h>

#include "kernels/gemm_avx2_rows.h"
#include "kernels/gemm_avx2_scales.h"
#include "kernels/gemm_panels.h"

namespace dunlin {
namespace {

DUNLIN_INLINE __m512i load512(const void* p) { return _mm512_loadu_si512(p); }
DUNLIN_INLINE __m512i repeat4(const std::int8_t* four) {
  int bits;
  __builtin_memcpy(&bits, four, sizeof(bits));
  return _mm512_set1_epi32(bits);
}
DUNLIN_INLINE __m512i join(__m256i low, __m256i high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

// SIMDe lacks two of the instructions at this width and gives a third's name to its masked form.
DUNLIN_INLINE __m512 to_floats(__m512i v) {
#ifdef DUNLIN_SIMDE
  const __m256 low = _mm256_cvtepi32_ps(_mm512_castsi512_si256(v));
  const __m256 high = _mm256_cvtepi32_ps(_mm512_extracti64x4_epi64(v, 1));
  return _mm512_castsi512_ps(join(_mm256_castps_si256(low), _mm256_castps_si256(high)));
#else
  return _mm512_cvtepi32_ps(v);
#endif
}
DUNLIN_INLINE __m512i upper_int16(__m512i v) {
#ifdef DUNLIN_SIMDE
  return join(_mm256_srai_epi32(_mm512_castsi512_si256(v), 16),
              _mm256_srai_epi32(_mm512_extracti64x4_epi64(v, 1), 16));
#else
  return _mm512_srai_epi32(v, 16);
#endif
}
DUNLIN_INLINE __m512i multiply_pairs(__m512i a, __m512i b) {
#ifdef DUNLIN_SIMDE
  return simde_mm512_madd_epi16(a, b);
#else
  return _mm512_madd_epi16(a, b);
#endif
}

// Shifts bytes as if each were alone; `mask` drops what came from the neighbour. by > 0: left.
template <int by>
DUNLIN_INLINE __m512i shift_and(__m512i v, char mask) {
  if constexpr (by > 0) v = _mm512_slli_epi16(v, by);
  if constexpr (by < 0) v = _mm512_srli_epi16(v, -by);
  return _mm512_and_si512(v, _mm512_set1_epi8(mask));
}

// Codes<Bits>(block).group<g>(): the unsigned codes of group g, all 16 rows.
template <typename Bits>
struct Codes;

template <>
struct Codes<Bits4> {
  const std::byte* block;
  template <int g>
  DUNLIN_INLINE __m512i group() const {
    return shift_and<g / 4 * -4>(load512(block + g % 4 * 64), 0x0f);
  }
};

template <>
struct Codes<Bits5> {
  const std::byte* block;
  template <int g>
  DUNLIN_INLINE __m512i group() const {
    return _mm512_or_si512(Codes<Bits4>{block}.template group<g>(),
                           shift_and<4 - g>(load512(block + 256), 0x10));
  }
};

template <>
struct Codes<Bits6> {
  const std::byte* block;
  template <int g>
  DUNLIN_INLINE __m512i group() const {
    return _mm512_or_si512(Codes<Bits4>{block}.template group<g>(),
                           shift_and<4 - g % 4 * 2>(load512(block + 256 + g / 4 * 64), 0x30));
  }
};

template <>
struct Codes<Bits2> {
  const std::byte* block;
  template <int g>
  DUNLIN_INLINE __m512i group() const {
    return shift_and<g % 4 * -2>(load512(block + g / 4 * 64), 0x03);
  }
};

template <>
struct Codes<Bits3> {
  const std::byte* block;
  template <int g>
  DUNLIN_INLINE __m512i group() const {
    return _mm512_or_si512(Codes<Bits2>{block}.template group<g>(),
                           shift_and<2 - g>(load512(block + 128), 0x04));
  }
};

template <>
struct Codes<Bits8> {
  const std::byte* block;
  template <int g>
  DUNLIN_INLINE __m512i group() const {
    return _mm512_xor_si512(load512(block + g * 64), _mm512_set1_epi8(-128));
  }
};

template <>
struct Codes<BitsIq4> {
  const std::byte* block;
  template <int g>
  DUNLIN_INLINE __m512i group() const {
    const __m512i signed_values = _mm512_broadcast_i32x4(load128(kIq4Values));
    const __m512i values = _mm512_xor_si512(signed_values, _mm512_set1_epi8(-128));
    return _mm512_shuffle_epi8(values, Codes<Bits4>{block}.template group<g>());
  }
};

// Unpacked before: 64 bytes a group.
struct UnpackedCodes {
  static constexpr int kBlockBytes = 512;
  const std::byte* block;
  template <int g>
  DUNLIN_INLINE __m512i group() const {
    return load512(block + g * 64);
  }
};

template <int g, int T, typename Source>
DUNLIN_INLINE void add_group(const Source& source, const ActivationBlock* const (&x)[T],
                             __m512i (&sums)[T]) {
  const __m512i w = source.template group<g>();
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    sums[t] = _mm512_dpbusd_epi32(sums[t], w, repeat4(x[t]->q + 4 * g));
  }
}

template <typename Format>
constexpr int kOffset = Format::kSigned ? 128 : Format::kZeroPoint;

// The block's integers of a format with one scale a block.
template <typename Format, int T, typename Source>
DUNLIN_INLINE void block_dots(const Source& source, const ActivationBlock* const (&x)[T],
                              __m512i (&dots)[T]) {
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) dots[t] = _mm512_set1_epi32(-kOffset<Format> * x[t]->sum);
  add_group<0>(source, x, dots);
  add_group<1>(source, x, dots);
  add_group<2>(source, x, dots);
  add_group<3>(source, x, dots);
  add_group<4>(source, x, dots);
  add_group<5>(source, x, dots);
  add_group<6>(source, x, dots);
  add_group<7>(source, x, dots);
}

// The same with a factor s a half block. The products stay below 2^24.
template <typename Format, int T, typename Source>
DUNLIN_INLINE void scaled_halves(const Source& source, const std::int16_t (&s)[2][32],
                                 const ActivationBlock* const (&x)[T], __m512i (&dots)[T]) {
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) dots[t] = _mm512_set1_epi32(-kOffset<Format> * x[t]->half_sums[0]);
  add_group<0>(source, x, dots);
  add_group<1>(source, x, dots);
  add_group<2>(source, x, dots);
  add_group<3>(source, x, dots);
  const __m512i s0 = upper_int16(load512(s[0]));
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) dots[t] = _mm512_mullo_epi32(dots[t], s0);
  __m512i second[T];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) second[t] = _mm512_set1_epi32(-kOffset<Format> * x[t]->half_sums[1]);
  add_group<4>(source, x, second);
  add_group<5>(source, x, second);
  add_group<6>(source, x, second);
  add_group<7>(source, x, second);
  const __m512i s1 = upper_int16(load512(s[1]));
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    dots[t] = _mm512_add_epi32(dots[t], _mm512_mullo_epi32(second[t], s1));
  }
}

// acc [token][16 rows] takes the block's integers in, as quant/panel_scales.h states.
template <ScaleKind kind, int T>
DUNLIN_INLINE void accumulate(const __m512i (&dots)[T], const StripScales& scales, int block,
                              const ActivationBlock* const (&x)[T], float (*acc)[16]) {
  const __m512 d = _mm512_loadu_ps(scales.d[block]);
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    const __m512 dx = _mm512_set1_ps(x[t]->scale);
    __m512 sum = _mm512_loadu_ps(acc[t]);
    sum = _mm512_fmadd_ps(_mm512_mul_ps(d, dx), to_floats(dots[t]), sum);
    if constexpr (kind == ScaleKind::kMin) {
      sum =
          _mm512_fmadd_ps(_mm512_loadu_ps(scales.m[block]), _mm512_set1_ps(x[t]->scaled_sum), sum);
    }
    if constexpr (kind == ScaleKind::kHalvesMin) {
      int pair;
      __builtin_memcpy(&pair, x[t]->half_sums, sizeof(pair));
      const __m512i min = multiply_pairs(load512(scales.t[block]), _mm512_set1_epi32(pair));
      const __m512 factor = _mm512_mul_ps(_mm512_loadu_ps(scales.m[block]), dx);
      sum = _mm512_fmadd_ps(factor, to_floats(min), sum);
    }
    _mm512_storeu_ps(acc[t], sum);
  }
}

// acc += strip x tokens. x: the tokens' rows at the strip's first block.
template <typename Format, int T, typename SourceAt>
DUNLIN_INLINE void run_strip(SourceAt source_at, int num_blocks, const StripScales& scales,
                             const ActivationBlock* (&x)[T], float (*acc)[16]) {
  constexpr ScaleKind kind = Format::Scales::kKind;
  for (int block = 0; block < num_blocks; ++block) {
    const auto source = source_at(block);
    __m512i dots[T];
    if constexpr (kind == ScaleKind::kHalves || kind == ScaleKind::kHalvesMin) {
      scaled_halves<Format>(source, scales.s[block], x, dots);
    } else {
      block_dots<Format>(source, x, dots);
    }
    accumulate<kind>(dots, scales, block, x, acc);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) ++x[t];
  }
}

}  // namespace
}  // namespace dunlin
