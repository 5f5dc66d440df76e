// Percentiles of a sample.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace dunlin {

// The p-th percentile, p in [0, 100], with linear interpolation between the two nearest (NumPy's
// default). `sorted` is ascending; 0 where it is empty.
inline double percentile(std::span<const double> sorted, double p) {
  if (sorted.empty()) return 0;
  const double at = p / 100 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double share = at - static_cast<double>(below);
  return sorted[below] + share * (sorted[above] - sorted[below]);
}

}  // namespace dunlin
