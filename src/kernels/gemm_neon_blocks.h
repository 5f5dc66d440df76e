// The NEON micro-kernels: 16 rows x T tokens over the blocks of a strip. Included by
// gemm_arm_neon.cc only.
//
// A group of four columns is four vectors of four rows: sdot multiplies their codes by four
// activations, one lane of the tokens' vector, and adds into int32, where nothing can overflow.
// Codes of at most six bits are non-negative as signed bytes; a sum starts at minus the zero
// point's share, zero point x sum of the activations.
#pragma once

#include "kernels/gemm_neon_codes.h"
#include "kernels/gemm_panels.h"

namespace dunlin {
namespace {

template <int T>
struct Tile {
  int32x4_t v[T][4];  // [token][quarter of the rows]
};

template <int T>
DUNLIN_INLINE void start(Tile<T>& sums, int token, std::int32_t value) {
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) sums.v[token][q] = vdupq_n_s32(value);
}

template <int g, int quarter, int T, typename Source>
DUNLIN_INLINE void add_quarter(const Source& source, const int8x16_t (&x)[T], Tile<T>& sums) {
  const int8x16_t w = vreinterpretq_s8_u8(source.template group<g, quarter>());
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) {
    sums.v[t][quarter] = vdotq_laneq_s32(sums.v[t][quarter], w, x[t], g % 4);
  }
}

template <int g, int T, typename Source>
DUNLIN_INLINE void add_group(const Source& source, const int8x16_t (&x)[T], Tile<T>& sums) {
  add_quarter<g, 0>(source, x, sums);
  add_quarter<g, 1>(source, x, sums);
  add_quarter<g, 2>(source, x, sums);
  add_quarter<g, 3>(source, x, sums);
}

// sums += codes x activations of columns 16 half .. 16 half + 15.
template <int half, int T, typename Source>
DUNLIN_INLINE void add_half(const Source& source, const ActivationBlock* const (&x)[T],
                            Tile<T>& sums) {
  int8x16_t columns[T];
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) columns[t] = vld1q_s8(x[t]->q + 16 * half);
  add_group<4 * half>(source, columns, sums);
  add_group<4 * half + 1>(source, columns, sums);
  add_group<4 * half + 2>(source, columns, sums);
  add_group<4 * half + 3>(source, columns, sums);
}

// The block's integers of a format with one scale a block.
template <typename Format, int T, typename Source>
DUNLIN_INLINE void block_dots(const Source& source, const ActivationBlock* const (&x)[T],
                              Tile<T>& dots) {
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) start(dots, t, -Format::kZeroPoint * x[t]->sum);
  add_half<0>(source, x, dots);
  add_half<1>(source, x, dots);
}

// Row factors of one quarter.
DUNLIN_INLINE int32x4_t factors(const std::int16_t* s, int quarter) {
  return vmovl_s16(vld1_s16(s + 4 * quarter));
}

// The same with a factor s a half block. The products stay below 2^24.
template <typename Format, int T, typename Source>
DUNLIN_INLINE void scaled_halves(const Source& source, const std::int16_t (&s)[2][16],
                                 const ActivationBlock* const (&x)[T], Tile<T>& dots) {
  Tile<T> sums;
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) start(sums, t, -Format::kZeroPoint * x[t]->half_sums[0]);
  add_half<0>(source, x, sums);
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
    const int32x4_t s0 = factors(s[0], q);
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) dots.v[t][q] = vmulq_s32(sums.v[t][q], s0);
  }
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) start(sums, t, -Format::kZeroPoint * x[t]->half_sums[1]);
  add_half<1>(source, x, sums);
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
    const int32x4_t s1 = factors(s[1], q);
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) dots.v[t][q] = vmlaq_s32(dots.v[t][q], sums.v[t][q], s1);
  }
}

// acc [token][16 rows] takes the block's integers in, as quant/panel_scales.h states.
template <ScaleKind kind, int T>
DUNLIN_INLINE void accumulate(const Tile<T>& dots, const StripScales& scales, int block,
                              const ActivationBlock* const (&x)[T], float (*acc)[16]) {
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) {
    const float32x4_t dx = vdupq_n_f32(x[t]->scale);
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      const float32x4_t d = vld1q_f32(scales.d[block] + 4 * q);
      float32x4_t sum = vld1q_f32(acc[t] + 4 * q);
      sum = vfmaq_f32(sum, vmulq_f32(d, dx), vcvtq_f32_s32(dots.v[t][q]));
      if constexpr (kind == ScaleKind::kMin) {
        sum = vfmaq_n_f32(sum, vld1q_f32(scales.m[block] + 4 * q), x[t]->scaled_sum);
      }
      if constexpr (kind == ScaleKind::kHalvesMin) {
        int32x4_t min = vmull_n_s16(vld1_s16(scales.t[block][0] + 4 * q), x[t]->half_sums[0]);
        min = vmlal_n_s16(min, vld1_s16(scales.t[block][1] + 4 * q), x[t]->half_sums[1]);
        const float32x4_t m = vld1q_f32(scales.m[block] + 4 * q);
        sum = vfmaq_f32(sum, vmulq_f32(m, dx), vcvtq_f32_s32(min));
      }
      vst1q_f32(acc[t] + 4 * q, sum);
    }
  }
}

// acc += strip x tokens. x: the tokens' rows at the strip's first block.
template <typename Format, int T, typename SourceAt>
DUNLIN_INLINE void run_strip(SourceAt source_at, int num_blocks, const StripScales& scales,
                             const ActivationBlock* (&x)[T], float (*acc)[16]) {
  constexpr ScaleKind kind = Format::Scales::kKind;
  for (int block = 0; block < num_blocks; ++block) {
    const auto source = source_at(block);
    Tile<T> dots;
    if constexpr (kind == ScaleKind::kHalves || kind == ScaleKind::kHalvesMin) {
      scaled_halves<Format>(source, scales.s[block], x, dots);
    } else {
      block_dots<Format>(source, x, dots);
    }
    accumulate<kind>(dots, scales, block, x, acc);
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) ++x[t];
  }
}

}  // namespace
}  // namespace dunlin
