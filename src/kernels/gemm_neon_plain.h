// Products of plain float weights with NEON. Included by gemm_arm_neon.cc only.
#pragma once

#include "kernels/gemm_neon_rows.h"

namespace dunlin {
namespace {

// row_values(p): the floats of four rows.
struct PlainF32 {
  static constexpr int kBytes = 4;
  static DUNLIN_INLINE float32x4_t row_values(const std::byte* p) {
    return vreinterpretq_f32_u8(load(p));
  }
};
struct PlainF16 {
  static constexpr int kBytes = 2;
  static DUNLIN_INLINE float32x4_t row_values(const std::byte* p) {
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(reinterpret_cast<const std::uint8_t*>(p))));
  }
};
struct PlainBF16 {
  static constexpr int kBytes = 2;
  static DUNLIN_INLINE float32x4_t row_values(const std::byte* p) {
    const uint8x8_t halves = vld1_u8(reinterpret_cast<const std::uint8_t*>(p));
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(halves), 16));
  }
};

// One fused chain a row and token over all columns.
template <typename Plain, int T>
void plain_tile(const PanelJob& job, std::int64_t panel, std::int64_t first_token) {
  const std::byte* w = job.panels + panel * job.panel_bytes;
  const float* x[T];
  float32x4_t sums[T][4];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    x[t] = job.x.values + x_row(job, first_token + t) * job.x.stride * kBlockCols;
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) sums[t][q] = vdupq_n_f32(0);
  }
  const std::int64_t cols = job.cols;
  for (std::int64_t k = 0; k < cols; ++k, w += 16 * Plain::kBytes) {
    float32x4_t rows[4];
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) rows[q] = Plain::row_values(w + 4 * q * Plain::kBytes);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q) sums[t][q] = vfmaq_n_f32(sums[t][q], rows[q], x[t][k]);
    }
  }
  float acc[T][16];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) vst1q_f32(acc[t] + 4 * q, sums[t][q]);
  }
  store_rows(job, panel, first_token, T, acc);
}

template <typename Plain>
void plain_panels(const PanelJob& job) {
  for (std::int64_t panel = 0; panel < job.num_panels; ++panel) {
    std::int64_t t = 0;
    for (; t + 6 <= job.num_tokens; t += 6) plain_tile<Plain, 6>(job, panel, t);
    const std::int64_t left = job.num_tokens - t;
    if (left >= 4) {
      plain_tile<Plain, 4>(job, panel, t);
      t += 4;
    }
    if (left % 4 == 3) plain_tile<Plain, 3>(job, panel, t);
    if (left % 4 == 2) plain_tile<Plain, 2>(job, panel, t);
    if (left % 4 == 1) plain_tile<Plain, 1>(job, panel, t);
  }
}

}  // namespace
}  // namespace dunlin
