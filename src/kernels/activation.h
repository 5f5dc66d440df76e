// Element-wise functions of a feed-forward layer and of logits.
#pragma once

#include <cstdint>

#include "cpu/isa.h"
#include "cpu/thread_pool.h"
#include "kernels/gemm.h"

namespace dunlin {

enum class GateFunction {
  kSilu,      // x / (1 + exp(-x))
  kGeluTanh,  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  kGeluErf,   // x/2 (1 + erf(x / sqrt(2)))
  // GPT-OSS: x / (1 + exp(-1.702 x)) with x = min(gate, 7), times 1 + up within [-7, 7].
  kClampedSwiglu,
};

// One row: y_i = function(gate_i) * up_i, or function(gate_i) where up is null (not with
// kClampedSwiglu). y [n] may be gate or up.
void gated(Isa isa, GateFunction function, const float* gate, const float* up, std::int64_t n,
           float* y);

// The phase between a feed-forward layer's two products: every token's row `gated`, written over
// gate, and stored in `out` (null: not; else reset to n columns by this call).
// gate, up [num_tokens, n] with a row stride of `stride` elements each; up may be null.
void gated_rows(ThreadPool& pool, Isa isa, GateFunction function, float* gate, const float* up,
                std::int64_t stride, std::int64_t n, std::int64_t num_tokens, Activations* out);

// x_i = cap * tanh(x_i / cap), in place (Gemma 2's logits).
void softcap(Isa isa, float cap, std::int64_t n, float* x);

// x_i += y_i, the same in every instruction set.
void add(const float* y, std::int64_t n, float* x);

// x_i += scale * y_i with the product rounded, the same in every instruction set.
void add_scaled(float scale, const float* y, std::int64_t n, float* x);

}  // namespace dunlin
