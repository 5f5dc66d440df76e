// RMS normalisation (Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019):
//   y_i = x_i / sqrt(mean_j(x_j^2) + eps) * weight_i
// The mean's order of sums is fixed by the instruction set and n alone.
#pragma once

#include <cstdint>

#include "cpu/isa.h"
#include "cpu/thread_pool.h"
#include "kernels/gemm.h"

namespace dunlin {

// One row. x, y [n]; y may be x. weight [n] or null (all ones).
void rms_norm(Isa isa, const float* x, const float* weight, float eps, std::int64_t n, float* y);

// What a step does between two linear layers, in one phase over the tokens:
//   residual += delta, or residual += rms_norm(delta, delta_weight) (post-norms, as Gemma's)
//   normed = rms_norm(residual, weight)
//   out.set_row(token, normed)
struct AddNorm {
  float* residual = nullptr;            // [num_tokens, n], the running sum; updated
  float* delta = nullptr;               // [num_tokens, n] or null: nothing to add
  const float* delta_weight = nullptr;  // [n] or null: delta is added as it is
  const float* weight = nullptr;        // [n] or null (all ones)
  float eps = 0;
  std::int64_t n = 0;
  float* normed = nullptr;  // [num_tokens, n]; may be delta
};

// out: null, or the rows' quantised form for the linear layers that follow (reset to n columns
// by this call).
void add_norm(ThreadPool& pool, Isa isa, const AddNorm& op, std::int64_t num_tokens,
              Activations* out);

}  // namespace dunlin
