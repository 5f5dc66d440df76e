#include "sampling/row_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace dunlin {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Logits as models give them, with some equal ones.
std::vector<float> random_row(unsigned seed, std::size_t size, float scale = 4) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> row(size);
  for (float& x : row) x = std::round(normal(random) * 64) / 64;
  return row;
}

TEST(RowArgmax, TakesTheLowestIdOfTheLargestLogitAtEverySize) {
  for (const std::size_t size : {1, 7, 8, 63, 2047, 2048, 2049, 5000}) {
    auto row = random_row(static_cast<unsigned>(size), size);
    const auto expected = std::max_element(row.begin(), row.end()) - row.begin();
    EXPECT_EQ(row_argmax(row), expected) << size;
    row.back() = row[static_cast<std::size_t>(expected)];
    EXPECT_EQ(row_argmax(row), expected) << size;
    row.back() = 100;
    EXPECT_EQ(row_argmax(row), static_cast<TokenId>(size - 1)) << size;
  }
}

TEST(RowMaxima, AreThoseOfEachBlockAndLeadToTheSameArgmax) {
  for (const std::size_t size : {1, 15, 16, 17, 33, 1000}) {
    auto row = random_row(static_cast<unsigned>(size), size);
    for (std::size_t i = 0; i < size; i += 5) row[i] = NAN;
    if (size > 40) std::fill_n(row.begin() + 16, 16, NAN);
    std::vector<float> maxima(maxima_size(size));
    row_maxima(row, maxima);
    for (std::size_t b = 0; b < maxima.size(); ++b) {
      float best = -kInf;
      for (std::size_t i = b * 16; i < std::min(size, b * 16 + 16); ++i) {
        if (row[i] > best) best = row[i];
      }
      EXPECT_EQ(maxima[b], best) << size << " block " << b;
    }
    EXPECT_EQ(row_argmax(row, maxima), row_argmax(row)) << size;
    std::vector<Candidate> a, b;
    select_top(row, 7, a);
    select_top(row, maxima, 7, b);
    std::sort(a.begin(), a.end(), ranks_before);
    std::sort(b.begin(), b.end(), ranks_before);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].id, b[i].id) << size;
  }
}

TEST(RowArgmax, SkipsWhatIsNotANumberAndRefusesARowWithoutNumbers) {
  std::vector<float> row(100, NAN);
  EXPECT_EQ(row_argmax(row), -1);
  row[70] = -kInf;
  EXPECT_EQ(row_argmax(row), -1);
  row[71] = -1e30f;
  EXPECT_EQ(row_argmax(row), 71);
  row[99] = kInf;
  EXPECT_EQ(row_argmax(row), 99);
}

TEST(RowWeights, FollowTheExponentialWithinRounding) {
  const auto row = random_row(1, 1003);
  const float max = row_max(row);
  for (const float temperature : {0.1f, 0.7f, 1.0f, 3.0f}) {
    std::vector<Weight> weights(row.size());
    const std::uint64_t total = row_weights(row, max, temperature, weights);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double exact = std::exp((static_cast<double>(row[i]) - max) / temperature) * 0x1p30;
      ASSERT_NEAR(weights[i], exact, 1 + exact * 4e-6) << i << " at " << temperature;
      sum += weights[i];
    }
    EXPECT_EQ(total, sum);
  }
}

TEST(RowWeights, AreZeroForNanAndMinusInfAndShareAnInfiniteMaximum) {
  std::vector<float> row = {NAN, 1, -kInf, 1, -500};
  std::vector<Weight> weights(row.size());
  EXPECT_EQ(row_weights(row, 1, 1, weights), 2ull * kOneWeight);
  EXPECT_EQ(weights, (std::vector<Weight>{0, kOneWeight, 0, kOneWeight, 0}));
  row[4] = kInf;
  EXPECT_EQ(row_weights(row, row_max(row), 1, weights), kOneWeight);
  EXPECT_EQ(weights, (std::vector<Weight>{0, 0, 0, 0, kOneWeight}));
}

TEST(WeightRange, HoldsTheWeightsOfTheBlocksBelowAndIsNarrow) {
  for (const std::size_t size : {16, 1003, 50000}) {
    for (const float scale : {0.01f, 1.0f, 6.0f}) {
      const auto row = random_row(static_cast<unsigned>(size), size, scale);
      const float max = row_max(row);
      std::vector<float> maxima(maxima_size(size));
      row_maxima(row, maxima);
      for (const float temperature : {0.1f, 0.7f, 2.0f}) {
        std::vector<Weight> weights(size);
        row_weights(row, max, temperature, weights);
        for (const float depth : {0.0f, 0.5f, 9.0f, 15.0f, 21.7f, 23.0f}) {
          const float least = max - depth * temperature;
          double sum = 0, of_best = 0, tokens = 0;
          for (std::size_t b = 0; b < maxima.size(); ++b) {
            if (!(maxima[b] < least)) continue;
            of_best += 16 * std::exp((static_cast<double>(maxima[b]) - max) / temperature) * 0x1p30;
            tokens += 16;
            for (std::size_t i = b * 16; i < std::min(size, b * 16 + 16); ++i) sum += weights[i];
          }
          const auto wide = weight_range_below(maxima, max, temperature, least);
          const auto close = weight_range_below(row, maxima, max, temperature, least);
          const auto is_at_most = [&](double a, double b) {
            EXPECT_LE(a, b) << size << " " << scale << " " << temperature << " " << depth;
          };
          is_at_most(static_cast<double>(close.least), sum);
          is_at_most(sum, static_cast<double>(close.most));
          is_at_most(sum, static_cast<double>(wide.most));
          EXPECT_EQ(wide.least, 0u);
          is_at_most(static_cast<double>(wide.most), 1.07 * of_best + tokens + 1);
          is_at_most(static_cast<double>(close.most),
                     1.08 * static_cast<double>(close.least) + 3 * tokens + 1);
        }
      }
    }
  }
}

TEST(RowSumExp, AgreesWithDoublePrecision) {
  const auto row = random_row(2, 10007);
  const float max = row_max(row);
  double exact = 0;
  for (const float x : row) exact += std::exp(static_cast<double>(x) - max);
  EXPECT_NEAR(row_sum_exp(row, max) / exact, 1, 1e-6);
}

TEST(SelectTop, EqualsAFullSortForEveryK) {
  for (const std::size_t size : {5, 64, 1000, 5003}) {
    const auto row = random_row(static_cast<unsigned>(size), size, 1);  // many ties
    std::vector<Candidate> sorted;
    for (std::size_t i = 0; i < size; ++i) sorted.push_back({row[i], static_cast<TokenId>(i)});
    std::sort(sorted.begin(), sorted.end(), ranks_before);
    for (const int k : {1, 2, 20, 63, 64, 500, 10000}) {
      std::vector<Candidate> top;
      select_top(row, k, top);
      std::sort(top.begin(), top.end(), ranks_before);
      ASSERT_EQ(top.size(), std::min<std::size_t>(size, static_cast<std::size_t>(k)));
      for (std::size_t i = 0; i < top.size(); ++i) ASSERT_EQ(top[i].id, sorted[i].id);
    }
  }
}

TEST(SelectTop, LeavesOutNanAndMinusInf) {
  const std::vector<float> row = {NAN, 2, -kInf, 1};
  std::vector<Candidate> top;
  select_top(row, 4, top);
  ASSERT_EQ(top.size(), 2u);
}

TEST(RowRank, CountsWhatRanksBefore) {
  const std::vector<float> row = {3, 1, 3, NAN, 2, 3, 0, 0, 0, 5};
  EXPECT_EQ(row_rank(row, 5, 9), 0);
  EXPECT_EQ(row_rank(row, 3, 0), 1);
  EXPECT_EQ(row_rank(row, 3, 5), 3);
  EXPECT_EQ(row_rank(row, 2, 4), 4);
}

}  // namespace
}  // namespace dunlin
