// The AVX2 micro-kernels: 16 rows x T tokens over the blocks of a strip. Included by
// gemm_x86_avx2.cc only.
//
// Codes of at most six bits stay unsigned: maddubs of codes and activations gives int16 sums of
// two products, which are added in int16 over a whole half or block. That wraps around, but the
// zero point's share (zero point x lane sum of the activations) is subtracted in int16 as well and
// the true sum always fits: a lane is 16 products for a block, 8 for a half, and
// 16 x 16 x 127 = 32,512, 8 x 32 x 127 = 32,512. Unsigned sums of four bits fit without
// (16 x 15 x 127 = 30,480); those of five bits with a minimum borrow the zero point 16 and give it
// back in int32. Signed bytes have no room for such sums (a pair of products takes all of int16):
// |w| x sign(w) x, widened to int32 at once.
#pragma once

#include "kernels/gemm_avx2_codes.h"
#include "kernels/gemm_panels.h"

namespace dunlin {
namespace {

// A block of a strip unpacked before: [group][half][32 lanes] bytes.
struct UnpackedCodes {
  static constexpr int kBlockBytes = 512;
  const std::byte* block;
  template <int g, int half>
  DUNLIN_INLINE __m256i group() const {
    return load(block + g * 64 + 32 * half);
  }
};

template <int T>
struct Tile {
  __m256i v[T][2];

  // Holds the sums in registers here: the compiler would otherwise gather all products first and
  // add them up later, with more of them alive than there are registers.
  DUNLIN_INLINE void pin() {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) asm("" : "+x"(v[t][0]), "+x"(v[t][1]));
  }
};

// sums (+)= codes of group g x activations; the first group of a sum starts it.
template <int g, bool first, int T, typename Source>
DUNLIN_INLINE void add_group(const Source& source, const ActivationBlock* const (&x)[T],
                             Tile<T>& sums) {
  const __m256i w0 = source.template group<g, 0>();
  const __m256i w1 = source.template group<g, 1>();
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    const __m256i xs = broadcast32(x[t]->q + 4 * g);
    const __m256i p0 = _mm256_maddubs_epi16(w0, xs), p1 = _mm256_maddubs_epi16(w1, xs);
    sums.v[t][0] = first ? p0 : _mm256_add_epi16(sums.v[t][0], p0);
    sums.v[t][1] = first ? p1 : _mm256_add_epi16(sums.v[t][1], p1);
  }
  sums.pin();
}

// sums -= 2^shift x lanes.
template <int shift, int T>
DUNLIN_INLINE void subtract(const __m256i (&lanes)[T], Tile<T>& sums) {
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    const __m256i share = _mm256_slli_epi16(lanes[t], shift);
    sums.v[t][0] = _mm256_sub_epi16(sums.v[t][0], share);
    sums.v[t][1] = _mm256_sub_epi16(sums.v[t][1], share);
  }
}

constexpr int log2_of(int value) { return value <= 1 ? 0 : 1 + log2_of(value / 2); }

// The block's integers, int32 [token][half of the rows], of a format with one scale a block.
template <typename Format, int T, typename Source>
DUNLIN_INLINE void block_dots(const Source& source, const ActivationBlock* const (&x)[T],
                              Tile<T>& dots) {
  add_group<0, true>(source, x, dots);
  add_group<1, false>(source, x, dots);
  add_group<2, false>(source, x, dots);
  add_group<3, false>(source, x, dots);
  add_group<4, false>(source, x, dots);
  add_group<5, false>(source, x, dots);
  add_group<6, false>(source, x, dots);
  add_group<7, false>(source, x, dots);
  constexpr bool borrow = Format::kZeroPoint == 0 && Format::Bits::kBlockBytes > 256;
  constexpr int zero_point = borrow ? 16 : Format::kZeroPoint;
  if constexpr (zero_point > 0) {
    __m256i lanes[T];
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) lanes[t] = broadcast32(x[t]->lanes);
    subtract<log2_of(zero_point)>(lanes, dots);
  }
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    dots.v[t][0] = _mm256_madd_epi16(dots.v[t][0], ones);
    dots.v[t][1] = _mm256_madd_epi16(dots.v[t][1], ones);
    if constexpr (borrow) {
      const __m256i share = _mm256_slli_epi32(broadcast32(&x[t]->sum), 4);
      dots.v[t][0] = _mm256_add_epi32(dots.v[t][0], share);
      dots.v[t][1] = _mm256_add_epi32(dots.v[t][1], share);
    }
  }
}

// The same with a factor s a half block.
template <typename Format, int T, typename Source>
DUNLIN_INLINE void scaled_halves(const Source& source, const std::int16_t (&s)[2][32],
                                 const ActivationBlock* const (&x)[T], Tile<T>& dots) {
  Tile<T> sums;
  add_group<0, true>(source, x, sums);
  add_group<1, false>(source, x, sums);
  add_group<2, false>(source, x, sums);
  add_group<3, false>(source, x, sums);
  __m256i lanes[T];
  if constexpr (Format::kZeroPoint > 0) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) lanes[t] = broadcast32(x[t]->half_lanes[0]);
    subtract<log2_of(Format::kZeroPoint)>(lanes, sums);
  }
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    dots.v[t][0] = _mm256_madd_epi16(sums.v[t][0], load(&s[0][0]));
    dots.v[t][1] = _mm256_madd_epi16(sums.v[t][1], load(&s[0][16]));
  }
  add_group<4, true>(source, x, sums);
  add_group<5, false>(source, x, sums);
  add_group<6, false>(source, x, sums);
  add_group<7, false>(source, x, sums);
  if constexpr (Format::kZeroPoint > 0) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) lanes[t] = broadcast32(x[t]->half_lanes[1]);
    subtract<log2_of(Format::kZeroPoint)>(lanes, sums);
  }
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    const __m256i p0 = _mm256_madd_epi16(sums.v[t][0], load(&s[1][0]));
    const __m256i p1 = _mm256_madd_epi16(sums.v[t][1], load(&s[1][16]));
    dots.v[t][0] = _mm256_add_epi32(dots.v[t][0], p0);
    dots.v[t][1] = _mm256_add_epi32(dots.v[t][1], p1);
  }
}

// Signed bytes: |w| x sign(w) x.
template <int g, bool first, int T, typename Source>
DUNLIN_INLINE void add_signed(const Source& source, const ActivationBlock* const (&x)[T],
                              Tile<T>& sums) {
  const __m256i w0 = source.template group<g, 0>(), w1 = source.template group<g, 1>();
  const __m256i a0 = _mm256_abs_epi8(w0), a1 = _mm256_abs_epi8(w1);
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    const __m256i xs = broadcast32(x[t]->q + 4 * g);
    const __m256i p0 = _mm256_madd_epi16(_mm256_maddubs_epi16(a0, _mm256_sign_epi8(xs, w0)), ones);
    const __m256i p1 = _mm256_madd_epi16(_mm256_maddubs_epi16(a1, _mm256_sign_epi8(xs, w1)), ones);
    sums.v[t][0] = first ? p0 : _mm256_add_epi32(sums.v[t][0], p0);
    sums.v[t][1] = first ? p1 : _mm256_add_epi32(sums.v[t][1], p1);
  }
  sums.pin();
}

template <int T, typename Source>
DUNLIN_INLINE void signed_dots(const Source& source, const ActivationBlock* const (&x)[T],
                               Tile<T>& dots) {
  add_signed<0, true>(source, x, dots);
  add_signed<1, false>(source, x, dots);
  add_signed<2, false>(source, x, dots);
  add_signed<3, false>(source, x, dots);
  add_signed<4, false>(source, x, dots);
  add_signed<5, false>(source, x, dots);
  add_signed<6, false>(source, x, dots);
  add_signed<7, false>(source, x, dots);
}

// acc [token][16 rows] takes the block's integers in, as quant/panel_scales.h states.
template <ScaleKind kind, int T>
DUNLIN_INLINE void accumulate(const Tile<T>& dots, const StripScales& scales, int block,
                              const ActivationBlock* const (&x)[T], float (*acc)[16]) {
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    const __m256 dx = _mm256_broadcast_ss(&x[t]->scale);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const __m256 scale = _mm256_mul_ps(_mm256_load_ps(scales.d[block] + 8 * half), dx);
      __m256 sum = _mm256_load_ps(acc[t] + 8 * half);
      sum = _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(dots.v[t][half]), sum);
      if constexpr (kind == ScaleKind::kMin) {
        sum = _mm256_fmadd_ps(_mm256_load_ps(scales.m[block] + 8 * half),
                              _mm256_broadcast_ss(&x[t]->scaled_sum), sum);
      }
      if constexpr (kind == ScaleKind::kHalvesMin) {
        const __m256i min =
            _mm256_madd_epi16(load(scales.t[block][8 * half]), broadcast32(x[t]->half_sums));
        const __m256 factor = _mm256_mul_ps(_mm256_load_ps(scales.m[block] + 8 * half), dx);
        sum = _mm256_fmadd_ps(factor, _mm256_cvtepi32_ps(min), sum);
      }
      _mm256_store_ps(acc[t] + 8 * half, sum);
    }
  }
}

// acc += strip x tokens. x: a tile's activations at the start of the strip; source_at(block) yields
// the codes of a block.
template <typename Format, int T, typename SourceAt>
DUNLIN_INLINE void run_strip(SourceAt source_at, int num_blocks, const StripScales& scales,
                             const ActivationBlock* (&x)[T], float (*acc)[16]) {
  constexpr ScaleKind kind = Format::Scales::kKind;
  for (int block = 0; block < num_blocks; ++block) {
    const auto source = source_at(block);
    Tile<T> dots;
    if constexpr (Format::kSigned) {
      signed_dots(source, x, dots);
    } else if constexpr (kind == ScaleKind::kHalves || kind == ScaleKind::kHalvesMin) {
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
