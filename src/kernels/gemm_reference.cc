#include "kernels/gemm_reference.h"

#include <algorithm>

#include "quant/dequantize.h"

namespace dunlin {
namespace {

constexpr int kLanes = 16;
// Columns dequantised at a time: 16 KiB on the stack, a multiple of every block size.
constexpr std::int64_t kStrip = 4096;

// Sixteen independent sums, so that the compiler may use vectors, added up pairwise.
float dot(const float* a, const float* b, std::int64_t n) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  }
  for (int lane = 0; i < n; ++i, ++lane) lanes[lane] += a[i] * b[i];
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

}  // namespace

void reference_rows(const GemmTask& task, const Activations& x, const TokenRange& tokens,
                    std::int64_t first_row, std::int64_t last_row) {
  const PackedMatrix& w = *task.weights;
  const std::int64_t cols = w.cols();
  const std::int64_t stored = row_bytes(w.dtype(), cols);
  alignas(64) float strip[kStrip];
  for (std::int64_t r = first_row; r < last_row; ++r) {
    const std::byte* row = w.panel(r / kPanelRows) + r % kPanelRows * stored;
    for (std::int64_t k = 0; k < cols; k += kStrip) {
      const std::int64_t n = std::min(kStrip, cols - k);
      dequantize(w.dtype(), row + row_bytes(w.dtype(), k), strip, n);
      for (std::int64_t t = tokens.first; t < tokens.first + tokens.count; ++t) {
        const float* values = x.values(tokens.rows ? tokens.rows[t] : t);
        const float start = k > 0 ? task.y[t * task.y_stride + r] : task.bias ? task.bias[r] : 0;
        task.y[t * task.y_stride + r] = start + dot(strip, values + k, n);
      }
    }
  }
}

}  // namespace dunlin
