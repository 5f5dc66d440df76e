#include "kernels/softmax.h"

#include <algorithm>
#include <cmath>

#include "kernels/float_kernels.h"

namespace dunlin {

void softmax(Isa isa, std::int64_t n, float* x) {
  float_kernels(isa).exp_below(x, *std::max_element(x, x + n), n, x);
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  const double inverse = 1.0 / sum;
  for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(x[i] * inverse);
}

double log_sum_exp(Isa isa, const float* x, std::int64_t n) {
  constexpr std::int64_t kPiece = 256;
  const FloatKernels& kernels = float_kernels(isa);
  const float greatest = *std::max_element(x, x + n);
  double sum = 0;
  for (std::int64_t begin = 0; begin < n; begin += kPiece) {
    const std::int64_t count = std::min(kPiece, n - begin);
    float weights[kPiece];
    kernels.exp_below(x + begin, greatest, count, weights);
    for (std::int64_t i = 0; i < count; ++i) sum += weights[i];
  }
  return greatest + std::log(sum);
}

}  // namespace dunlin
