#include "sampling/logprobs.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace dunlin {
namespace {

TEST(Logprobs, AreTheLogSoftmaxOfTheRow) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 5);
  std::vector<float> row(3001);
  for (float& x : row) x = normal(random);
  double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<double>(x));
  std::vector<Candidate> scratch;
  const TokenLogprobs result = compute_logprobs(row, 77, 5, scratch);
  EXPECT_NEAR(result.logprob, row[77] - std::log(sum), 1e-5);
  ASSERT_EQ(result.top.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    const auto [id, logprob] = result.top[i];
    EXPECT_NEAR(logprob, row[static_cast<std::size_t>(id)] - std::log(sum), 1e-5);
    if (i > 0) {
      EXPECT_LE(logprob, result.top[i - 1].second);
    }
    EXPECT_EQ(compute_logprobs(row, id, 0, scratch).rank, static_cast<int>(i));
  }
}

TEST(Logprobs, SurviveInfinitiesAndNan) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<Candidate> scratch;
  const std::vector<float> row = {NAN, 0, kInf, -kInf, kInf};
  EXPECT_NEAR(compute_logprobs(row, 2, 2, scratch).logprob, -std::log(2.0), 1e-6);
  EXPECT_EQ(compute_logprobs(row, 1, 2, scratch).logprob, -kInf);
  EXPECT_EQ(compute_logprobs(row, 0, 2, scratch).logprob, -kInf);
  EXPECT_EQ(compute_logprobs(row, 4, 2, scratch).rank, 1);
}

}  // namespace
}  // namespace dunlin
