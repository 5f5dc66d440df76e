#include "quant/iq4_quantizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "quant/dequantize.h"
#include "quant/iq4_values.h"
#include "quant/quantize.h"

namespace dunlin {
namespace {

constexpr int kBlock = 32;

std::vector<float> normal(int blocks, float deviation) {
  std::mt19937 generator(11);
  std::normal_distribution<float> draw(0, deviation);
  std::vector<float> values(static_cast<std::size_t>(blocks * kBlock));
  for (float& value : values) value = draw(generator);
  return values;
}

std::vector<float> round_trip(DType dtype, const std::vector<float>& values) {
  const auto n = static_cast<std::int64_t>(values.size());
  std::vector<std::byte> bytes(static_cast<std::size_t>(row_bytes(dtype, n)) + 1);
  quantize(dtype, values.data(), bytes.data() + 1, n);
  std::vector<float> out(values.size());
  dequantize(dtype, bytes.data() + 1, out.data(), n);
  return out;
}

double squared_error(const float* a, const float* b, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += std::pow(double{a[i]} - double{b[i]}, 2);
  return sum;
}

// The smallest error of a block that any of many scales gives.
double least_error(const float* block) {
  float largest = 0;
  for (int j = 0; j < kBlock; ++j) largest = std::max(largest, std::fabs(block[j]));
  double least = std::numeric_limits<double>::max();
  for (int step = -1500; step <= 1500; ++step) {
    const double scale = largest / 100.0 * step / 1000.0;
    double error = 0;
    for (int j = 0; j < kBlock; ++j) {
      double nearest = std::numeric_limits<double>::max();
      for (const int value : kIq4Values)
        nearest = std::min(nearest, std::fabs(double{block[j]} - scale * value));
      error += nearest * nearest;
    }
    least = std::min(least, error);
  }
  return least;
}

TEST(Iq4Quantizer, comes_near_to_the_best_scale_of_every_block) {
  const std::vector<float> values = normal(100, 0.02f);
  const std::vector<float> got = round_trip(DType::kIQ4_NL, values);
  double all = 0, best = 0;
  for (std::size_t at = 0; at < values.size(); at += kBlock) {
    const double error = squared_error(&values[at], &got[at], kBlock);
    const double least = least_error(&values[at]);
    EXPECT_LT(error, 1.3 * least) << "block " << at / kBlock;
    all += error;
    best += least;
  }
  EXPECT_LT(all, 1.03 * best);
  const std::vector<float> other = round_trip(DType::kQ4_0, values);
  EXPECT_LT(all, 0.75 * squared_error(values.data(), other.data(), values.size()));
}

TEST(Iq4Quantizer, what_the_format_holds_comes_back) {
  std::vector<float> values;
  for (int b = 0; b < 11; ++b)  // no whole number of groups
    for (int j = 0; j < kBlock; ++j)
      values.push_back(0.25f * static_cast<float>(b - 5) *
                       static_cast<float>(kIq4Values[(7 * j + b) % 16]));
  EXPECT_EQ(round_trip(DType::kIQ4_NL, values), values);
}

TEST(Iq4Quantizer, numbers_that_are_too_large_are_seen) {
  std::vector<float> values = normal(3, 0.02f);
  for (const float large : {1e7f, 1e20f, -3e38f}) {
    values[40] = large;
    std::vector<std::byte> bytes(3 * 18);
    quantize_iq4_nl(values.data(), bytes.data(), 3 * kBlock);
    EXPECT_TRUE(all_finite(DType::kIQ4_NL, bytes.data(), kBlock));
    EXPECT_FALSE(all_finite(DType::kIQ4_NL, bytes.data() + 18, kBlock)) << large;
    EXPECT_TRUE(all_finite(DType::kIQ4_NL, bytes.data() + 36, kBlock));
  }
}

}  // namespace
}  // namespace dunlin
