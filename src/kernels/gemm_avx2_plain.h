// Products of plain float weights with AVX2. Included by gemm_x86_avx2.cc only.
#pragma once

#include "kernels/gemm_avx2_rows.h"

namespace dunlin {
namespace {

struct PlainF32 {
  static constexpr int kBytes = 4;
  static DUNLIN_INLINE __m256 row_values(const std::byte* p) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(p));
  }
};
struct PlainF16 {
  static constexpr int kBytes = 2;
  static DUNLIN_INLINE __m256 row_values(const std::byte* p) { return _mm256_cvtph_ps(load128(p)); }
};
struct PlainBF16 {
  static constexpr int kBytes = 2;
  static DUNLIN_INLINE __m256 row_values(const std::byte* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load128(p)), 16));
  }
};

// One fused chain a row and token over all columns.
template <typename Plain, int T>
void plain_tile(const PanelJob& job, std::int64_t panel, std::int64_t first_token) {
  const std::byte* w = job.panels + panel * job.panel_bytes;
  const float* x[T];
  __m256 sums[T][2];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    x[t] = job.x.values + x_row(job, first_token + t) * job.x.stride * kBlockCols;
    sums[t][0] = sums[t][1] = _mm256_setzero_ps();
  }
  const std::int64_t cols = job.cols;
  for (std::int64_t k = 0; k < cols; ++k, w += 16 * Plain::kBytes) {
    _mm_prefetch(reinterpret_cast<const char*>(w + 2048), _MM_HINT_T1);
    const __m256 w0 = Plain::row_values(w), w1 = Plain::row_values(w + 8 * Plain::kBytes);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const __m256 value = _mm256_broadcast_ss(x[t] + k);
      sums[t][0] = _mm256_fmadd_ps(w0, value, sums[t][0]);
      sums[t][1] = _mm256_fmadd_ps(w1, value, sums[t][1]);
    }
  }
  alignas(64) float acc[T][16];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    _mm256_store_ps(acc[t], sums[t][0]);
    _mm256_store_ps(acc[t] + 8, sums[t][1]);
  }
  store_rows(job, panel, first_token, T, acc);
}

// Tiles of six tokens; what is left over goes as 4 + 4, 4 + 3, 3 + 2 and the like: two tokens alone
// have too few chains to keep the multipliers busy.
template <typename Plain>
void plain_panels(const PanelJob& job) {
  for (std::int64_t panel = 0; panel < job.num_panels; ++panel) {
    for (std::int64_t t = 0; t < job.num_tokens;) {
      const std::int64_t left = job.num_tokens - t;
      if (left >= 9 || left == 6) {
        plain_tile<Plain, 6>(job, panel, t);
        t += 6;
      } else if (left >= 7 || left == 4) {
        plain_tile<Plain, 4>(job, panel, t);
        t += 4;
      } else if (left >= 3) {
        plain_tile<Plain, 3>(job, panel, t);
        t += 3;
      } else if (left == 2) {
        plain_tile<Plain, 2>(job, panel, t);
        t += 2;
      } else {
        plain_tile<Plain, 1>(job, panel, t);
        t += 1;
      }
    }
  }
}

}  // namespace
}  // namespace dunlin
