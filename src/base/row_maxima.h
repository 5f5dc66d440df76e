// A row of logits comes with the largest value of each kMaximaBlock neighbours, -inf where there is
// none (a NaN counts as -inf): they are found while the row is in the first-level cache, and answer
// most questions about it.
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>

namespace dunlin {

inline constexpr std::size_t kMaximaBlock = 16;

// Of a row of n values.
inline constexpr std::size_t maxima_size(std::size_t n) {
  return (n + kMaximaBlock - 1) / kMaximaBlock;
}

// The largest of kMaximaBlock values.
inline float block_max(const float* x) {
  using Floats = float __attribute__((vector_size(16)));
  Floats best = Floats{} - std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < kMaximaBlock; i += 4) {
    Floats v;
    std::memcpy(&v, x + i, sizeof(v));
    best = v > best ? v : best;
  }
  const Floats two = __builtin_shufflevector(best, best, 2, 3, 0, 1);
  best = two > best ? two : best;
  const Floats one = __builtin_shufflevector(best, best, 1, 0, 3, 2);
  return one[0] > best[0] ? one[0] : best[0];
}

// maxima [maxima_size(n)] of row [n].
inline void row_maxima(const float* row, std::size_t n, float* maxima) {
  std::size_t block = 0;
  for (; (block + 1) * kMaximaBlock <= n; ++block)
    maxima[block] = block_max(row + block * kMaximaBlock);
  if (block * kMaximaBlock == n) return;
  float best = -std::numeric_limits<float>::infinity();
  for (std::size_t i = block * kMaximaBlock; i < n; ++i) best = row[i] > best ? row[i] : best;
  maxima[block] = best;
}

}  // namespace dunlin
