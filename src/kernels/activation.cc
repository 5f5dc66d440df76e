#include "kernels/activation.h"

#include "base/check.h"
#include "kernels/float_kernels.h"

namespace dunlin {

void gated(Isa isa, GateFunction function, const float* gate, const float* up, std::int64_t n,
           float* y) {
  const FloatKernels& kernels = float_kernels(isa);
  switch (function) {
    case GateFunction::kSilu: return kernels.silu_mul(gate, up, n, y);
    case GateFunction::kGeluTanh: return kernels.gelu_tanh_mul(gate, up, n, y);
    case GateFunction::kGeluErf: return kernels.gelu_erf_mul(gate, up, n, y);
    case GateFunction::kClampedSwiglu:
      DUNLIN_DCHECK(up != nullptr, "kClampedSwiglu needs both");
      return kernels.clamped_swiglu(gate, up, n, y);
  }
}

void softcap(Isa isa, float cap, std::int64_t n, float* x) {
  float_kernels(isa).softcap(cap, n, x);
}

void add(const float* y, std::int64_t n, float* x) {
  for (std::int64_t i = 0; i < n; ++i) x[i] += y[i];
}

void add_scaled(float scale, const float* y, std::int64_t n, float* x) {
  for (std::int64_t i = 0; i < n; ++i) x[i] += scale * y[i];
}

}  // namespace dunlin
