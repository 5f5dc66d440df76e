#include "kernels/norm.h"

#include "kernels/float_kernels.h"

namespace dunlin {

void rms_norm(Isa isa, const float* x, const float* weight, float eps, std::int64_t n, float* y) {
  float_kernels(isa).rms_norm(x, weight, eps, n, y);
}

}  // namespace dunlin
