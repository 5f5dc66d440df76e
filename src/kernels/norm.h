// Norms of a row:
//   RMS    y_i = x_i / sqrt(mean_j(x_j^2) + eps) * weight_i
//          (Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019)
//   layer  y_i = (x_i - mean) / sqrt(variance + eps) * weight_i + bias_i
//          (Ba et al., "Layer Normalization", 2016)
// The order of the sums is fixed by the instruction set and n alone.
#pragma once

#include <cstdint>

#include "cpu/isa.h"
#include "cpu/thread_pool.h"
#include "kernels/gemm.h"

namespace dunlin {

enum class NormType { kNone, kRms, kLayer };

struct Norm {
  NormType type = NormType::kNone;  // kNone: y = x
  const float* weight = nullptr;    // [n] or null (all ones)
  const float* bias = nullptr;      // [n] or null
  float eps = 0;
};

// One row. x, y [n]; y may be x.
void normalize(Isa isa, const Norm& norm, const float* x, std::int64_t n, float* y);

// The RMS norm of one row. weight [n] or null.
void rms_norm(Isa isa, const float* x, const float* weight, float eps, std::int64_t n, float* y);

// What a step does between two linear layers, in one phase over the tokens:
//   residual += delta_scale * delta_norm(delta)
//   normed = norm(residual)
//   out.set_row(token, normed)
struct AddNorm {
  float* residual = nullptr;  // [num_tokens, n], the running sum; updated
  float* delta = nullptr;     // [num_tokens, n] or null: nothing to add. May be written over
  Norm delta_norm{};
  float delta_scale = 1;
  Norm norm{};
  std::int64_t n = 0;
  float* normed = nullptr;  // [num_tokens, n]; may be delta
};

// out: null, or the rows' quantised form for the linear layers that follow (reset to n columns
// by this call).
void add_norm(ThreadPool& pool, Isa isa, const AddNorm& op, std::int64_t num_tokens,
              Activations* out);

}  // namespace dunlin
