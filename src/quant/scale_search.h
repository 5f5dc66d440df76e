// Scales of groups of weights by least squares. Codes that are fixed have a best scale (and
// minimum) in closed form, so trial scales give codes, those their best scale, and the smallest
// error wins: the idea is that of llama.cpp's k-quants (Kawrakow, "k-quants", llama.cpp pull
// request 1684, 2023).
//
// Eight groups are searched side by side, one a lane, so that every sum has one order on every
// machine and compilers still use vectors.
#pragma once

#include <cstdint>
#include <limits>

namespace dunlin::scale_search {

inline constexpr int kLanes = 8;
inline constexpr float kStep = 0.2f;  // from trial to trial, in codes
typedef float Lanes __attribute__((vector_size(32)));
typedef std::int32_t LaneBits __attribute__((vector_size(32)));

inline Lanes lanes_of(float value) { return Lanes{} + value; }
inline Lanes smaller(Lanes a, Lanes b) { return a < b ? a : b; }
inline Lanes larger(Lanes a, Lanes b) { return a > b ? a : b; }
// The nearest whole number, ties to even, of numbers below 2^22.
inline Lanes nearest(Lanes x) { return (x + 0x1.8p23f) - 0x1.8p23f; }
inline Lanes clamped(Lanes x, float min, float max) {
  return smaller(larger(x, lanes_of(min)), lanes_of(max));
}

// x [kSize][8]: element j of group g at x[j][g], from src [8][kSize].
template <int kSize>
void load_groups(const float* src, Lanes* x) {
  for (int j = 0; j < kSize; ++j)
    for (int g = 0; g < kLanes; ++g) x[j][g] = src[g * kSize + j];
}

// What a trial's codes q add up to, over the elements of a group.
struct CodeSums {
  Lanes q{}, qq{}, xq{};
};

struct AffineFit {
  Lanes scale;
  Lanes min;  // not above 0
};

// x ~ scale * q + min with q from 0 to max_code, for numbers from 1e-15 to 1e15 in size.
template <int kSize>
AffineFit fit_affine(const Lanes* x, float max_code) {
  constexpr int kTrials = 12, kPlainTrial = 6;  // the one whose codes reach from 0 to max_code
  Lanes low{}, high = x[0], sum_x{};
  for (int j = 0; j < kSize; ++j) {
    low = smaller(low, x[j]);
    high = larger(high, x[j]);
    sum_x += x[j];
  }
  const Lanes range = high - low;
  const Lanes inverse = range > 1e-15f ? 1.0f / range : Lanes{};
  // Where no trial has a closed form, all codes are the same.
  AffineFit best{range / max_code, low};
  Lanes best_error = lanes_of(std::numeric_limits<float>::max());
  for (int trial = 0; trial < kTrials; ++trial) {
    const Lanes inverse_scale =
        (max_code + kStep * static_cast<float>(trial - kPlainTrial)) * inverse;
    CodeSums sums;
    for (int j = 0; j < kSize; ++j) {
      const Lanes q = clamped(nearest((x[j] - low) * inverse_scale), 0, max_code);
      sums.q += q;
      sums.qq += q * q;
      sums.xq += x[j] * q;
    }
    constexpr float kCount = kSize;
    const Lanes determinant = kCount * sums.qq - sums.q * sums.q;
    Lanes scale = (kCount * sums.xq - sum_x * sums.q) / determinant;
    Lanes min = (sums.qq * sum_x - sums.q * sums.xq) / determinant;
    const LaneBits above = min > 0.0f;
    scale = above ? sums.xq / sums.qq : scale;
    min = above ? Lanes{} : min;
    // Less the sum of x * x, which all trials share.
    const Lanes error = scale * (scale * sums.qq + 2.0f * (min * sums.q - sums.xq)) +
                        min * (kCount * min - 2.0f * sum_x);
    const LaneBits better = (error < best_error) & (determinant > 0.0f);
    best.scale = better ? scale : best.scale;
    best.min = better ? min : best.min;
    best_error = better ? error : best_error;
  }
  return best;
}

// x ~ scale * q with q from -half to half - 1; the scale has a sign. For numbers as above.
template <int kSize>
Lanes fit_symmetric(const Lanes* x, float half) {
  constexpr int kWidest = 6;  // trials to each side of the one that makes the extreme -half
  Lanes extreme = x[0];
  for (int j = 1; j < kSize; ++j) {
    const LaneBits further = (x[j] > 0.0f ? x[j] : -x[j]) > (extreme > 0.0f ? extreme : -extreme);
    extreme = further ? x[j] : extreme;
  }
  const LaneBits is_flat = (extreme > 0.0f ? extreme : -extreme) <= 1e-15f;
  const Lanes inverse = is_flat ? Lanes{} : -1.0f / extreme;
  Lanes best{}, best_gain{};
  for (int trial = -kWidest; trial <= kWidest; ++trial) {
    const Lanes inverse_scale = (half + kStep * static_cast<float>(trial)) * inverse;
    CodeSums sums;
    for (int j = 0; j < kSize; ++j) {
      const Lanes q = clamped(nearest(x[j] * inverse_scale), -half, half - 1);
      sums.qq += q * q;
      sums.xq += x[j] * q;
    }
    const Lanes scale = sums.xq / sums.qq;
    const Lanes gain = scale * sums.xq;  // how far the squared error falls
    const LaneBits better = gain > best_gain;
    best = better ? scale : best;
    best_gain = better ? gain : best_gain;
  }
  return best;
}

}  // namespace dunlin::scale_search
