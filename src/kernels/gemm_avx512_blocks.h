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
// sum += w's unsigned bytes times four signed ones, repeated in every lane.
DUNLIN_INLINE void add_products(__m512i& sum, __m512i w, const std::int8_t* four) {
#ifdef DUNLIN_SIMDE
  int bits;
  __builtin_memcpy(&bits, four, sizeof(bits));
  sum = _mm512_dpbusd_epi32(sum, w, _mm512_set1_epi32(bits));
#else
  // GCC 12 would broadcast in an instruction of its own.
  using Four = const std::int8_t[4];
  asm("vpdpbusd %1%{1to16%}, %2, %0" : "+v"(sum) : "m"(*reinterpret_cast<Four*>(four)), "v"(w));
#endif
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

// The tokens of a tile: x[t] points to token t's current block. Rows anywhere, or evenly spaced, so
// that a few registers address 16 of them.
template <int T>
struct RowTokens {
  static constexpr int kCount = T;
  const ActivationBlock* rows[T];
  DUNLIN_INLINE const ActivationBlock* operator[](int t) const { return rows[t]; }
  DUNLIN_INLINE void advance() {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) ++rows[t];
  }
  DUNLIN_INLINE const RowTokens& again() const { return *this; }
};

struct SpacedTokens {
  static constexpr int kCount = 16;
  std::int64_t stride_bytes;
  const std::byte* fours[4];  // every fourth row

  DUNLIN_INLINE SpacedTokens(const void* row, std::int64_t stride) : stride_bytes(stride) {
    for (int i = 0; i < 4; ++i) fours[i] = static_cast<const std::byte*>(row) + 4 * i * stride;
  }
  DUNLIN_INLINE const std::byte* first() const { return fours[0]; }
  DUNLIN_INLINE const ActivationBlock* operator[](int t) const {
    return reinterpret_cast<const ActivationBlock*>(fours[t / 4] + t % 4 * stride_bytes);
  }
  DUNLIN_INLINE void advance() {
    for (auto& four : fours) four += sizeof(ActivationBlock);
  }
  // The same, so that the compiler computes addresses anew: it would keep all 16 in memory.
  DUNLIN_INLINE SpacedTokens again() const {
    SpacedTokens same = *this;
    asm("" : "+r"(same.stride_bytes));
    return same;
  }
};

template <int g, typename Tokens, typename Source>
DUNLIN_INLINE void add_group(const Source& source, const Tokens& x,
                             __m512i (&sums)[Tokens::kCount]) {
  const __m512i w = source.template group<g>();
  const auto& rows = x.again();
#pragma GCC unroll 16
  for (int t = 0; t < Tokens::kCount; ++t) add_products(sums[t], w, rows[t]->q + 4 * g);
}

template <typename Format>
constexpr int kOffset = Format::kSigned ? 128 : Format::kZeroPoint;

// Minus the zero point's share of a sum over the first half, the second or both.
template <typename Format, int first_half, int second_half>
DUNLIN_INLINE __m512i offset_share(const ActivationBlock& x) {
  if constexpr (kOffset<Format> == 0) return _mm512_setzero_si512();
  constexpr int kFirst = -kOffset<Format> * first_half, kSecond = -kOffset<Format> * second_half;
  int halves;
  __builtin_memcpy(&halves, x.half_sums, sizeof(halves));
  return multiply_pairs(_mm512_set1_epi32(halves),
                        _mm512_set1_epi32((kFirst & 0xffff) | kSecond * 65536));
}

// The block's integers of a format with one scale a block.
template <typename Format, typename Tokens, typename Source>
DUNLIN_INLINE void block_dots(const Source& source, const Tokens& x,
                              __m512i (&dots)[Tokens::kCount]) {
#pragma GCC unroll 16
  for (int t = 0; t < Tokens::kCount; ++t) dots[t] = offset_share<Format, 1, 1>(*x[t]);
  add_group<0>(source, x, dots);
  add_group<1>(source, x, dots);
  add_group<2>(source, x, dots);
  add_group<3>(source, x, dots);
  add_group<4>(source, x, dots);
  add_group<5>(source, x, dots);
  add_group<6>(source, x, dots);
  add_group<7>(source, x, dots);
}

// The integers of both halves of a block, for a format with a factor a half.
template <typename Format, typename Tokens, typename Source>
DUNLIN_INLINE void half_dots(const Source& source, const Tokens& x,
                             __m512i (&first)[Tokens::kCount], __m512i (&second)[Tokens::kCount]) {
#pragma GCC unroll 8
  for (int t = 0; t < Tokens::kCount; ++t) {
    first[t] = offset_share<Format, 1, 0>(*x[t]);
    second[t] = offset_share<Format, 0, 1>(*x[t]);
  }
  add_group<0>(source, x, first);
  add_group<1>(source, x, first);
  add_group<2>(source, x, first);
  add_group<3>(source, x, first);
  add_group<4>(source, x, second);
  add_group<5>(source, x, second);
  add_group<6>(source, x, second);
  add_group<7>(source, x, second);
}

// first * s[0] + second * s[1]: below 2^24, so floats hold the products and their sum exactly, and
// take half the time of integer multiplications.
struct HalfFactors {
  __m512 first, second;
  DUNLIN_INLINE explicit HalfFactors(const std::int16_t (&s)[2][32])
      : first(to_floats(upper_int16(load512(s[0])))),
        second(to_floats(upper_int16(load512(s[1])))) {}
  DUNLIN_INLINE __m512 sum(__m512i first_dot, __m512i second_dot) const {
    return _mm512_fmadd_ps(second, to_floats(second_dot),
                           _mm512_mul_ps(first, to_floats(first_dot)));
  }
};

// sum + the block of one token, whose integers are `dot`, as quant/panel_scales.h states.
template <ScaleKind kind>
DUNLIN_INLINE __m512 add_block(__m512 sum, __m512 dot, const StripScales& scales, int block,
                               const ActivationBlock* x) {
  const __m512 dx = _mm512_set1_ps(x->scale);
  sum = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_load_ps(scales.d[block]), dx), dot, sum);
  if constexpr (kind == ScaleKind::kMin) {
    sum = _mm512_fmadd_ps(_mm512_load_ps(scales.m[block]), _mm512_set1_ps(x->scaled_sum), sum);
  }
  if constexpr (kind == ScaleKind::kHalvesMin) {
    int pair;
    __builtin_memcpy(&pair, x->half_sums, sizeof(pair));
    const __m512i min = multiply_pairs(load512(scales.t[block]), _mm512_set1_epi32(pair));
    const __m512 factor = _mm512_mul_ps(_mm512_load_ps(scales.m[block]), dx);
    sum = _mm512_fmadd_ps(factor, to_floats(min), sum);
  }
  return sum;
}

template <typename Format>
constexpr bool kHasHalves =
    Format::Scales::kKind == ScaleKind::kHalves || Format::Scales::kKind == ScaleKind::kHalvesMin;

// acc [token][16 rows] += strip x tokens. x: the tokens' rows at the strip's first block.
template <typename Format, typename Tokens, typename SourceAt>
DUNLIN_INLINE void run_strip(SourceAt source_at, int num_blocks, const StripScales& scales,
                             Tokens x, float (*acc)[16]) {
  constexpr int T = Tokens::kCount;
  constexpr ScaleKind kind = Format::Scales::kKind;
  for (int block = 0; block < num_blocks; ++block, x.advance()) {
    const auto source = source_at(block);
    __m512i dots[T];
    if constexpr (kHasHalves<Format>) {
      __m512i second[T];
      half_dots<Format>(source, x, dots, second);
      const HalfFactors factors(scales.s[block]);
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) {
        const __m512 dot = factors.sum(dots[t], second[t]);
        _mm512_store_ps(acc[t], add_block<kind>(_mm512_load_ps(acc[t]), dot, scales, block, x[t]));
      }
    } else {
      block_dots<Format>(source, x, dots);
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) {
        const __m512 dot = to_floats(dots[t]);
        _mm512_store_ps(acc[t], add_block<kind>(_mm512_load_ps(acc[t]), dot, scales, block, x[t]));
      }
    }
  }
}

}  // namespace
}  // namespace dunlin
