#include "kernels/norm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/float_kernels.h"

namespace dunlin {
namespace {

// Sums in as many strands as the widest vector has lanes, so that the loop can use them; the same
// bits in every instruction set.
constexpr std::size_t kStrands = 16;

template <typename Term>
float sum_of(std::int64_t n, Term term) {
  std::array<float, kStrands> strands{};
  constexpr auto kStep = static_cast<std::int64_t>(kStrands);
  std::int64_t i = 0;
  for (; i + kStep <= n; i += kStep)
    for (std::size_t j = 0; j < kStrands; ++j) strands[j] += term(i + static_cast<std::int64_t>(j));
  for (std::size_t j = 0; i < n; ++i, ++j) strands[j] += term(i);
  float sum = 0;
  for (const float strand : strands) sum += strand;
  return sum;
}

void layer_norm(const Norm& norm, const float* x, std::int64_t n, float* y) {
  const auto count = static_cast<float>(n);
  const float mean = sum_of(n, [&](std::int64_t i) { return x[i]; }) / count;
  const float variance =
      sum_of(n, [&](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / count;
  const float inverse = 1.0f / std::sqrt(variance + norm.eps);
  for (std::int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * inverse;
  if (norm.weight != nullptr)
    for (std::int64_t i = 0; i < n; ++i) y[i] *= norm.weight[i];
  if (norm.bias != nullptr)
    for (std::int64_t i = 0; i < n; ++i) y[i] += norm.bias[i];
}

}  // namespace

void rms_norm(Isa isa, const float* x, const float* weight, float eps, std::int64_t n, float* y) {
  float_kernels(isa).rms_norm(x, weight, eps, n, y);
}

void normalize(Isa isa, const Norm& norm, const float* x, std::int64_t n, float* y) {
  switch (norm.type) {
    case NormType::kNone:
      if (x != y) std::copy_n(x, n, y);
      return;
    case NormType::kLayer: layer_norm(norm, x, n, y); return;
    case NormType::kRms:
      rms_norm(isa, x, norm.weight, norm.eps, n, y);
      if (norm.bias != nullptr)
        for (std::int64_t i = 0; i < n; ++i) y[i] += norm.bias[i];
      return;
  }
}

}  // namespace dunlin
