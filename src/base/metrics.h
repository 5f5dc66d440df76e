// Histograms with fixed buckets, as Prometheus counts them. Plain values: the owner observes, and
// hands copies to whoever prints.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dunlin {

// `bounds` are the buckets' upper limits, inclusive and ascending; one more bucket takes the rest.
template <std::size_t N>
class Histogram {
 public:
  explicit constexpr Histogram(const std::array<double, N>& bounds) : bounds_(bounds) {}

  void observe(double value) {
    std::size_t i = 0;
    while (i < N && value > bounds_[i]) ++i;
    ++counts_[i];
    ++count_;
    sum_ += value;
  }

  static constexpr std::size_t num_bounds() { return N; }
  double bound(std::size_t i) const { return bounds_[i]; }
  // Observations in bucket i alone, i in [0, N]; Prometheus prints running sums of these.
  std::uint64_t bucket_count(std::size_t i) const { return counts_[i]; }
  std::uint64_t count() const { return count_; }
  double sum() const { return sum_; }

 private:
  std::array<double, N> bounds_;
  std::array<std::uint64_t, N + 1> counts_{};
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

// The bucket limits that vLLM's dashboards expect, in seconds.
inline constexpr std::array<double, 22> kFirstTokenBuckets = {
    .001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
    1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
inline constexpr std::array<double, 19> kTokenTimeBuckets = {
    .01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80};
inline constexpr std::array<double, 21> kRequestTimeBuckets = {
    .3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
// In tokens.
inline constexpr std::array<double, 13> kStepTokenBuckets = {1,   8,    16,   32,   64,   128,  256,
                                                             512, 1024, 2048, 4096, 8192, 16384};
inline constexpr std::array<double, 19> kRequestTokenBuckets = {
    1,    2,    5,     10,    20,    50,     100,    200,    500,    1000,
    2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000};

}  // namespace dunlin
