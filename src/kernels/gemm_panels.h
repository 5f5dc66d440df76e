// What a panel kernel is given, and the kernels of an instruction set. Plain data only: per-ISA
// files include this. Internal to kernels/.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dunlin {

// 32 columns of one row of activations: one cache line with all that the integer kernels need, so
// that a token costs them one pointer.
struct alignas(64) ActivationBlock {
  std::int8_t q[32];
  float scale;                    // x = scale * q
  float scaled_sum;               // scale * sum
  std::int32_t sum;               // of q
  std::int16_t half_sums[2];      // of q[0..15] and q[16..31]
  std::int16_t half_lanes[2][2];  // of those, over the columns with k % 4 < 2 and over the others
  std::int16_t lanes[2];          // the same over all 32
};

// Rows of a step in the forms that kernels read. From row to row are `stride` blocks, an odd
// number, so that the same block of many rows, which a tile reads together, never falls into one
// set of a cache.
struct ActivationRows {
  std::int64_t num_blocks;  // a row: columns rounded up to whole blocks
  std::int64_t stride;      // num_blocks | 1
  ActivationBlock* blocks;  // [rows, stride]
  float* values;            // [rows, 32 stride] or null
};

// Consecutive panels of one matrix times the tokens.
struct PanelJob {
  const std::byte* panels;
  std::int64_t panel_bytes;
  std::int64_t num_panels;
  std::int64_t cols;
  std::int64_t num_rows;  // of the job: the last panel may be cut short
  ActivationRows x;
  const std::int32_t* token_rows;  // [num_tokens] rows of x, or null: 0, 1, ...
  std::int64_t num_tokens;
  const float* bias;  // [num_rows] or null
  float* y;           // [num_tokens, num_rows], row stride y_stride
  std::int64_t y_stride;
};

inline constexpr int kNumPanelTypes = 20;  // kNumDTypes; checked where the tables are read

struct GemmKernels {
  void (*panels[kNumPanelTypes])(const PanelJob& job);  // by DType; null: not a weight
  // Fills the blocks of row `token` from x [num_cols].
  void (*quantize_row)(const ActivationRows& rows, std::int64_t token, const float* x,
                       std::int64_t num_cols);
};

// One definition each, constant.
extern const GemmKernels kReferenceQ8Gemm;
#if defined(__x86_64__)
extern const GemmKernels kAvx2Gemm;
extern const GemmKernels kAvx512Gemm;
extern const GemmKernels kAmxGemm;
#elif defined(__aarch64__)
extern const GemmKernels kNeonGemm;
#endif

}  // namespace dunlin
