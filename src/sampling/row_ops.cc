#include "sampling/row_ops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace dunlin {
namespace {

// GCC's and Clang's vector types: element-wise operators on four lanes, the width that every
// baseline has in one register.
constexpr std::size_t kLanes = 4;
using Floats = float __attribute__((vector_size(16)));
using Ints = std::int32_t __attribute__((vector_size(16)));

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
constexpr float kInf = std::numeric_limits<float>::infinity();

inline Floats splat(float value) { return Floats{} + value; }
inline Floats load(const float* from) {
  Floats lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}
// The last, partial group of a row, filled up with -inf.
inline Floats load_tail(const float* from, std::size_t count) {
  float lanes[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = i < count ? from[i] : kMinusInf;
  return load(lanes);
}

// exp(y) for y <= 0, within 2 ulp; anything below -87, and NaN, counts as -87 (1.6e-38).
// y = n ln 2 + r with |r| <= ln 2 / 2; exp(r) by its Taylor polynomial of degree 7 (remainder under
// 1e-8); n enters through the exponent bits. Adding 1.5 * 2^23 rounds to the nearest integer.
inline Floats exp_lanes(Floats y) {
  y = y > splat(-87.0f) ? y : splat(-87.0f);
  const Floats magic = splat(12582912.0f);
  const Floats shifted = y * 1.44269504f + magic;
  const Floats n = shifted - magic;
  const Floats r = (y - n * 0.693145752f) - n * 1.42860677e-6f;  // ln 2 in two parts
  Floats p = splat(1.0f / 5040);
  p = p * r + (1.0f / 720);
  p = p * r + (1.0f / 120);
  p = p * r + (1.0f / 24);
  p = p * r + (1.0f / 6);
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const Ints exponent = (std::bit_cast<Ints>(shifted) - (0x4B400000 - 127)) << 23;
  return p * std::bit_cast<Floats>(exponent);
}

// At least exp((x - max) / temperature), but for 2e-5 of it by rounding, and at most 1.0615 of it;
// x <= max, 0 where it is below 2^-127. 2^(n + f) <= 2^n (1 + f), whose bits are n + f in fixed
// point.
class ExpBound {
 public:
  ExpBound(float max, float temperature)
      : max_(max), scale_(1.0f / temperature * (1.44269504f * 8388608.0f)) {}
  Floats operator()(Floats x) const {
    const Floats bits = (x - max_) * scale_ + 127.0f * 8388608.0f;
    const Ints n_and_f = __builtin_convertvector(bits, Ints);
    return std::bit_cast<Floats>(n_and_f & ~(n_and_f >> 31));
  }

 private:
  float max_, scale_;
};

inline Ints weight_lanes(Floats x, float max, float inverse_temperature) {
  const Floats w = exp_lanes((x - max) * inverse_temperature);
  return __builtin_convertvector(w * static_cast<float>(kOneWeight) + 0.5f, Ints);
}

// Chains of maxima that don't wait for each other. `x > best ? x : best` ignores a NaN in x, and is
// the one form that becomes a single instruction.
inline float max_of_block(const float* from, std::size_t count) {
  constexpr std::size_t kChains = 16;
  float best[kChains];
  for (float& b : best) b = kMinusInf;
  std::size_t i = 0;
  for (; i + kChains <= count; i += kChains) {
    for (std::size_t j = 0; j < kChains; ++j) {
      best[j] = from[i + j] > best[j] ? from[i + j] : best[j];
    }
  }
  for (; i < count; ++i) best[0] = from[i] > best[0] ? from[i] : best[0];
  for (std::size_t j = 1; j < kChains; ++j) best[0] = best[j] > best[0] ? best[j] : best[0];
  return best[0];
}

// Sums of weights without 64-bit lanes: the low and high 16 bits apart, flushed before the low
// halves (below 2^16 each) can overflow.
class WeightSum {
 public:
  void add(Ints w) {
    low_ += w & 0xFFFF;
    high_ += w >> 16;
    if (++count_ == 16384) flush();
  }
  std::uint64_t total() {
    flush();
    return total_;
  }

 private:
  void flush() {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      total_ +=
          static_cast<std::uint64_t>(low_[lane]) + (static_cast<std::uint64_t>(high_[lane]) << 16);
    }
    low_ = high_ = Ints{};
    count_ = 0;
  }
  Ints low_{};
  Ints high_{};
  int count_ = 0;
  std::uint64_t total_ = 0;
};

template <typename Lanes>
double sum_of(Lanes v) {
  return static_cast<double>(v[0]) + static_cast<double>(v[1]) + static_cast<double>(v[2]) +
         static_cast<double>(v[3]);
}

// The range of the weights of that many tokens, from the sum of their ExpBounds: with a hair
// more for the rounding of sums, and one for that of each weight.
WeightRange range_of(double bound, double tokens) {
  constexpr double kHair = 0x1p-8;
  const double least = bound * (kOneWeight / 1.0615 * (1 - kHair)) - tokens;
  const double most = bound * (kOneWeight * (1 + kHair)) + tokens;
  return {static_cast<std::uint64_t>(std::max(least, 0.0)), static_cast<std::uint64_t>(most) + 1};
}

template <typename BlockMax>
void select_top_blocks(std::span<const float> row, int k, std::vector<Candidate>& out,
                       BlockMax block_max) {
  out.clear();
  if (k <= 0) return;
  const auto keep = static_cast<std::size_t>(k);
  const auto shrink = [&] {
    if (out.size() <= keep) return;
    std::nth_element(out.begin(), out.begin() + (k - 1), out.end(), ranks_before);
    out.resize(keep);
  };
  // Candidates come in ascending id, so one that only equals the threshold ranks behind the k
  // that are there.
  float threshold = kMinusInf;
  for (std::size_t begin = 0; begin < row.size(); begin += kMaximaBlock) {
    const std::size_t end = std::min(begin + kMaximaBlock, row.size());
    if (!(block_max(begin, end) > threshold)) continue;
    for (std::size_t i = begin; i < end; ++i) {
      if (row[i] > threshold) out.push_back({row[i], static_cast<TokenId>(i)});
    }
    if (out.size() >= 2 * keep) {
      shrink();
      threshold = out[keep - 1].value;
    }
  }
  shrink();
}

}  // namespace

float row_max(std::span<const float> row) { return max_of_block(row.data(), row.size()); }

void row_maxima(std::span<const float> row, std::span<float> maxima) {
  row_maxima(row.data(), row.size(), maxima.data());
}

TokenId row_argmax(std::span<const float> row, std::span<const float> maxima) {
  const TokenId block = row_argmax(maxima);
  if (block < 0) return -1;
  const auto best = maxima[static_cast<std::size_t>(block)];
  std::size_t i = static_cast<std::size_t>(block) * kMaximaBlock;
  while (row[i] != best) ++i;
  return static_cast<TokenId>(i);
}

TokenId row_argmax(std::span<const float> row) {
  // The search for the index touches only the block with the maximum, which is still in L1.
  constexpr std::size_t kBlock = 2048;
  float best = kMinusInf;
  std::size_t best_block = row.size();
  for (std::size_t begin = 0; begin < row.size(); begin += kBlock) {
    const float max = max_of_block(row.data() + begin, std::min(kBlock, row.size() - begin));
    if (max > best) {
      best = max;
      best_block = begin;
    }
  }
  for (std::size_t i = best_block; i < row.size(); ++i) {
    if (row[i] == best) return static_cast<TokenId>(i);
  }
  return -1;
}

std::uint64_t row_weights(std::span<const float> row, float max, float temperature,
                          std::span<Weight> weights) {
  if (max == kInf) {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      weights[i] = row[i] == kInf ? kOneWeight : 0;
      total += weights[i];
    }
    return total;
  }
  const float inverse = 1.0f / temperature;
  WeightSum sum;
  std::size_t i = 0;
  for (; i + kLanes <= row.size(); i += kLanes) {
    const Ints w = weight_lanes(load(row.data() + i), max, inverse);
    std::memcpy(weights.data() + i, &w, sizeof w);
    sum.add(w);
  }
  if (i < row.size()) {
    const Ints w = weight_lanes(load_tail(row.data() + i, row.size() - i), max, inverse);
    std::memcpy(weights.data() + i, &w, (row.size() - i) * sizeof(Weight));
    sum.add(w);
  }
  return sum.total();
}

std::uint64_t block_weights(const float* block, float max, float temperature, Weight* weights) {
  const float inverse = 1.0f / temperature;
  Ints low{}, high{};
  for (std::size_t i = 0; i < kMaximaBlock; i += kLanes) {
    const Ints w = weight_lanes(load(block + i), max, inverse);
    std::memcpy(weights + i, &w, sizeof w);
    low += w & 0xFFFF;
    high += w >> 16;
  }
  const auto sum = [](Ints v) { return static_cast<std::uint64_t>(v[0] + v[1] + v[2] + v[3]); };
  return sum(low) + (sum(high) << 16);
}

WeightRange weight_range_below(std::span<const float> maxima, float max, float temperature,
                               float least) {
  const ExpBound exp_bound(max, temperature);
  const Floats weightless = splat(max - kWeightlessDepth * temperature);
  Floats sums{};
  Ints counts{};
  const auto add = [&](Floats m) {
    const Ints is_in = (m >= weightless) & (m < splat(least));
    sums += std::bit_cast<Floats>(std::bit_cast<Ints>(exp_bound(m)) & is_in);
    counts -= is_in;
  };
  std::size_t i = 0;
  for (; i + kLanes <= maxima.size(); i += kLanes) add(load(maxima.data() + i));
  if (i < maxima.size()) add(load_tail(maxima.data() + i, maxima.size() - i));
  return {0, range_of(kMaximaBlock * sum_of(sums), kMaximaBlock * sum_of(counts)).most};
}

WeightRange weight_range_below(std::span<const float> row, std::span<const float> maxima, float max,
                               float temperature, float least) {
  const ExpBound exp_bound(max, temperature);
  const float weightless = max - kWeightlessDepth * temperature;
  double sum = 0, blocks = 0;
  // Short chains in float, their sums in double.
  constexpr std::size_t kChain = 256;
  for (std::size_t first = 0; first < maxima.size(); first += kChain) {
    Floats sums[2] = {};
    for (std::size_t b = first; b < std::min(first + kChain, maxima.size()); ++b) {
      if (!(maxima[b] >= weightless && maxima[b] < least)) continue;
      ++blocks;
      const float* block = row.data() + b * kMaximaBlock;
      const std::size_t count = std::min(kMaximaBlock, row.size() - b * kMaximaBlock);
      if (count == kMaximaBlock) {
        sums[0] += exp_bound(load(block)) + exp_bound(load(block + kLanes));
        sums[1] += exp_bound(load(block + 2 * kLanes)) + exp_bound(load(block + 3 * kLanes));
      } else {
        for (std::size_t i = 0; i < count; i += kLanes)
          sums[0] += exp_bound(load_tail(block + i, count - i));
      }
    }
    sum += sum_of(sums[0]) + sum_of(sums[1]);
  }
  return range_of(sum, kMaximaBlock * blocks);
}

double row_sum_exp(std::span<const float> row, float max) {
  // Short chains in float, their sums in double.
  constexpr std::size_t kBlock = 16 * kLanes;
  double total = 0;
  for (std::size_t begin = 0; begin < row.size(); begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, row.size());
    Floats sums{};
    std::size_t i = begin;
    for (; i + kLanes <= end; i += kLanes) sums += exp_lanes(load(row.data() + i) - max);
    if (i < end) sums += exp_lanes(load_tail(row.data() + i, end - i) - max);
    for (std::size_t lane = 0; lane < kLanes; ++lane) total += static_cast<double>(sums[lane]);
  }
  return total;
}

int row_rank(std::span<const float> row, float value, TokenId id) {
  Ints counts{};
  std::size_t i = 0;
  for (; i + kLanes <= row.size(); i += kLanes) counts -= load(row.data() + i) > splat(value);
  int rank = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) rank += counts[lane];
  for (; i < row.size(); ++i) rank += row[i] > value;
  for (std::size_t j = 0; j < static_cast<std::size_t>(id); ++j) rank += row[j] == value;
  return rank;
}

void select_top(std::span<const float> row, std::span<const float> maxima, int k,
                std::vector<Candidate>& out) {
  select_top_blocks(row, k, out,
                    [&](std::size_t begin, std::size_t) { return maxima[begin / kMaximaBlock]; });
}

void select_top(std::span<const float> row, int k, std::vector<Candidate>& out) {
  select_top_blocks(row, k, out, [&](std::size_t begin, std::size_t end) {
    return max_of_block(row.data() + begin, end - begin);
  });
}

}  // namespace dunlin
