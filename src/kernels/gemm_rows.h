// What the panel kernels of every SIMD instruction set share: which rows of x a job reads and how
// results are stored. Included by per-ISA files only; everything has internal linkage.
#pragma once

#include "kernels/gemm_panels.h"
#include "kernels/inline.h"
#include "quant/panel_formats.h"

namespace dunlin {
namespace {

// A strip's place in the panel.
struct StripRange {
  std::int64_t first_block;
  int num_blocks;
};

DUNLIN_INLINE std::int64_t x_row(const PanelJob& job, std::int64_t token) {
  return job.token_rows != nullptr ? job.token_rows[token] : token;
}

// y [count] = acc + bias, which may be null. A constant count becomes vectors.
DUNLIN_INLINE void store_row(const float* acc, const float* bias, int count, float* y) {
  for (int r = 0; r < count; ++r) y[r] = bias != nullptr ? acc[r] + bias[r] : acc[r];
}

// acc [token][16 rows] to y, with the bias, cut where the matrix ends.
void store_rows(const PanelJob& job, std::int64_t panel, std::int64_t first_token,
                std::int64_t num_tokens, const float (*acc)[16]) {
  const std::int64_t row = panel * kPanelRows;
  const std::int64_t left = job.num_rows - row;
  const float* bias = job.bias != nullptr ? job.bias + row : nullptr;
  for (std::int64_t t = 0; t < num_tokens; ++t) {
    float* y = job.y + (first_token + t) * job.y_stride + row;
    if (left >= kPanelRows) {
      store_row(acc[t], bias, kPanelRows, y);
    } else {
      store_row(acc[t], bias, static_cast<int>(left), y);
    }
  }
}

}  // namespace
}  // namespace dunlin
