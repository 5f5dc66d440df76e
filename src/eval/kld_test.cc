#include "eval/kld.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/percentile.h"
#include "support/fake_model.h"
#include "support/fake_tokenizer.h"

namespace dunlin::eval {
namespace {

std::vector<float> logits_of(std::vector<double> probabilities, double shift) {
  std::vector<float> row;
  for (const double p : probabilities) row.push_back(static_cast<float>(std::log(p) + shift));
  return row;
}

TEST(KlDivergence, OfKnownDistributions) {
  const auto half = logits_of({0.5, 0.5}, 3), skewed = logits_of({0.75, 0.25}, -7);
  EXPECT_NEAR(kl_divergence(half, skewed), 0.5 * std::log(4.0 / 3), 1e-6);
  EXPECT_NEAR(kl_divergence(skewed, half), 0.75 * std::log(1.5) - 0.25 * std::log(2), 1e-6);
  EXPECT_EQ(kl_divergence(skewed, skewed), 0);
  // Tokens that the base rules out count nothing; those that the other side does, everything.
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> certain{0, -inf}, open{0, 0};
  EXPECT_NEAR(kl_divergence(certain, open), std::log(2), 1e-9);
  EXPECT_EQ(kl_divergence(open, certain), static_cast<double>(inf));
}

TEST(KlDivergence, PercentilesAreLinearBetweenValues) {
  const std::vector<double> values{1, 2, 4, 8, 16};
  EXPECT_EQ(percentile(values, 0), 1);
  EXPECT_EQ(percentile(values, 50), 4);
  EXPECT_DOUBLE_EQ(percentile(values, 90), 8 + 0.6 * 8);
  EXPECT_EQ(percentile(values, 100), 16);
}

TEST(DivergenceSums, GiveBothPerplexitiesAndTheShareOfEqualTops) {
  const auto even = logits_of({0.25, 0.25, 0.5}, 0), other = logits_of({0.5, 0.25, 0.25}, 0);
  DivergenceSums sums;
  sums.add(even, even, 0);
  sums.add(even, other, 0);
  sums.add(other, even, 1);
  sums.add(other, other, 0);
  const Divergence found = sums.result();
  EXPECT_EQ(found.num_positions, 4);
  const double kld = 0.5 * std::log(2) - 0.25 * std::log(2);
  EXPECT_NEAR(found.kld.value, kld / 2, 1e-6);
  EXPECT_NEAR(found.kld.error, std::sqrt(kld * kld / 4 / 3), 1e-6);
  EXPECT_NEAR(found.maximum, kld, 1e-6);
  EXPECT_NEAR(found.median, kld / 2, 1e-6);
  EXPECT_DOUBLE_EQ(found.same_top.value, 0.5);
  EXPECT_DOUBLE_EQ(found.same_top.error, std::sqrt(0.25 / 3));
  EXPECT_NEAR(found.base_nll.value, std::log(2) * (2 + 2 + 2 + 1) / 4, 1e-6);
  EXPECT_NEAR(found.nll.value, std::log(2) * (2 + 1 + 2 + 1) / 4, 1e-6);
  EXPECT_NEAR(found.nll_difference.value, -std::log(2) / 4, 1e-6);
}

std::unique_ptr<Engine> make_engine(std::vector<int> windows, bool prefix_cache) {
  EngineConfig config;
  configure_scoring(config, 64);
  config.max_seqs = 2;
  config.prefix_cache = prefix_cache;
  return Engine::create(std::make_unique<testing::FakeModel>(std::move(windows), 258), config)
      .value();
}

// In parts or whole, with or without a prefix cache, by chunks of 64 tokens of which 31 count.
TEST(MeasureDivergence, DependsOnNoParts) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>('a' + i * i % 23);
  const auto chunks = cut_into_chunks(FakeTokenizer(), text, 64, 0).value();
  const testing::FakeModel one({0}, 258), two({0, 24}, 258);
  DivergenceSums expected;
  for (const auto& ids : chunks.ids)
    for (std::size_t i = 33; i < 64; ++i) {
      const auto before = std::span(ids).first(i);
      expected.add(testing::fake_row(one.kv_layout(), before, 258),
                   testing::fake_row(two.kv_layout(), before, 258), ids[i]);
    }
  for (const std::int64_t num_rows : {1, 7, 31, 1000})
    for (const bool prefix_cache : {false, true}) {
      const auto base = make_engine({0}, prefix_cache),
                 measured = make_engine({0, 24}, prefix_cache);
      int num_told = 0;
      const auto found = measure_divergence(
          *base, *measured, chunks, [&](int, int) { ++num_told; }, num_rows * 258 * 4);
      ASSERT_TRUE(found.has_value()) << found.error().message();
      EXPECT_EQ(num_told, 4);
      EXPECT_EQ(found->num_chunks, 4);
      EXPECT_EQ(found->num_positions, 4 * 31);
      EXPECT_EQ(found->kld.value, expected.result().kld.value);
      EXPECT_EQ(found->nll.value, expected.result().nll.value);
      EXPECT_EQ(found->same_top.value, expected.result().same_top.value);
      EXPECT_GT(found->kld.value, 0);
      EXPECT_EQ(measure_divergence(*base, *base, chunks, {})->maximum, 0);
    }
}

TEST(MeasureDivergence, WantsOneVocabulary) {
  const auto base = make_engine({0}, false);
  EngineConfig config;
  const auto other =
      Engine::create(std::make_unique<testing::FakeModel>(std::vector<int>{0}, 61), config).value();
  const auto chunks = cut_into_chunks(FakeTokenizer(), std::string(64, 'a'), 16, 0).value();
  const auto found = measure_divergence(*base, *other, chunks, {});
  ASSERT_FALSE(found.has_value());
  EXPECT_NE(found.error().message().find("258 and 61 tokens"), std::string::npos);
}

}  // namespace
}  // namespace dunlin::eval
