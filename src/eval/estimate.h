// What a sample says of the whole: a mean and how far off it may be.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace dunlin::eval {

// A mean and its standard error.
struct Estimate {
  double value = 0;
  double error = 0;
};

// exp of what is estimated, the error to first order.
inline Estimate exp_of(const Estimate& estimate) {
  return {std::exp(estimate.value), std::exp(estimate.value) * estimate.error};
}

// Of independent values.
class MeanSum {
 public:
  void add(double value) {
    sum_ += value;
    sum_of_squares_ += value * value;
    ++count_;
  }
  std::int64_t count() const { return count_; }
  // The error is 0 where there is one value, or none.
  Estimate mean() const {
    if (count_ == 0) return {};
    const auto count = static_cast<double>(count_);
    const double mean = sum_ / count;
    const double variance = std::max(0.0, sum_of_squares_ / count - mean * mean);
    return {mean, std::sqrt(variance / std::max(count - 1, 1.0))};
  }

 private:
  double sum_ = 0, sum_of_squares_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace dunlin::eval
