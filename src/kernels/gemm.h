// Linear layers: y[t, r] = bias[r] + sum_k w[r, k] * x[t, k], for t in the tokens of a whole step.
//
// Contract of the sums, for every instruction set, layout and number of tokens (bit for bit equal
// to Isa::kReferenceQ8): within a scale group integers; then one float accumulator a (row, token),
// explicit fma, groups in ascending K; no split over K. Weights of plain float types take float
// activations, one fma chain a row. Isa::kReference uses float activations for every type.
#pragma once

#include <cstdint>
#include <span>

#include "cpu/isa.h"
#include "cpu/thread_pool.h"
#include "kernels/gemm_panels.h"
#include "quant/packed_matrix.h"
#include "tensor/buffer.h"

namespace dunlin {

// The inputs of a step's linear layers: int8 per group of 32 with a float scale, the sums that
// formats with minima and zero points need, and the floats themselves where a weight of the model
// wants those. Filled row by row by the operation that produces them, from any worker.
//
// A group's scale is max|x| / 127, q = round to nearest even(x * (127 / max|x|)); a group below
// 1e-30 is zero; one with an infinity or a NaN has scale NaN, so that it shows in every output.
class Activations {
 public:
  Activations() = default;
  // Room for max_tokens rows of max_cols columns. keep_float: also keep the rows as floats, which
  // weights of plain float types and Isa::kReference read.
  void reserve(std::int64_t max_tokens, std::int64_t max_cols, bool keep_float);
  // Sets the column count of the rows to come; rows set before are void.
  void reset(std::int64_t cols);
  // Stores x [cols] as row `token`. Different tokens may be set from different workers at once.
  void set_row(Isa isa, std::int64_t token, const float* x);

  std::int64_t cols() const { return cols_; }
  bool keeps_float() const { return keep_float_; }
  const float* values(std::int64_t token) const;  // [cols], only with keep_float
  // The rows, for kernels.
  const ActivationRows& rows() const { return view_; }

 private:
  std::int64_t max_tokens_ = 0;
  std::int64_t max_cols_ = 0;  // rounded up to whole groups of 32
  std::int64_t cols_ = 0;
  bool keep_float_ = false;
  Buffer blocks_, values_;
  ActivationRows view_{};
};

// One matrix of a phase. Several that share their input (Q, K and V; gate and up) run as one.
struct GemmTask {
  const PackedMatrix* weights = nullptr;
  const float* bias = nullptr;  // [rows] or null
  float* y = nullptr;           // [num_tokens, rows] with row stride y_stride (elements)
  std::int64_t y_stride = 0;
  // Null, or the maxima of each row of y (base/row_maxima.h): [num_tokens, maxima_size(rows)].
  float* maxima = nullptr;

  // For gemm_grouped: the task's own rows of x, [num_tokens] or null: 0, 1, ...
  std::int64_t num_tokens = 0;
  const std::int32_t* token_rows = nullptr;
};

// Runs the tasks over rows 0..num_tokens of x. Each weight byte is read once, or once for each
// group of as many tokens as a core's cache holds. Returns the bytes of weights read, counted once.
// With a pool that redoes overdue chunks the weights and biases must outlive the pool.
// token_rows: null, or [num_tokens] which rows of x to use (logits of chosen tokens).
std::int64_t gemm(ThreadPool& pool, Isa isa, std::span<const GemmTask> tasks, const Activations& x,
                  std::int64_t num_tokens, const std::int32_t* token_rows = nullptr);

// The same where each task has rows of its own, in one phase of the pool: experts and their tokens,
// heads and their queries. A task without tokens costs nothing. y of a task is dense: its row t is
// for row token_rows[t] of x.
std::int64_t gemm_grouped(ThreadPool& pool, Isa isa, std::span<const GemmTask> tasks,
                          const Activations& x);

// Tells the pool's workers that gemm() over these tasks comes next, with any x and y: while they
// wait they bring what they will read first closer. Worth it while reading weights takes the time.
void warm_gemm(ThreadPool& pool, std::span<const GemmTask> tasks, std::int64_t num_tokens);

}  // namespace dunlin
