#include "sampling/logits_processors.h"

#include <cmath>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace dunlin {
namespace {

TEST(TokenCounts, CountsOutputAndRemembersThePrompt) {
  std::mt19937 random(5);
  std::vector<TokenId> prompt;
  for (int i = 0; i < 300; ++i) prompt.push_back(static_cast<TokenId>(random() % 200));
  TokenCounts counts(prompt, 4);  // more is added than room was asked for
  std::map<TokenId, int> expected;
  for (const TokenId token : prompt) expected[token];
  for (int i = 0; i < 1000; ++i) {
    const auto token = static_cast<TokenId>(random() % 500);
    counts.add(token);
    ++expected[token];
  }
  ASSERT_EQ(counts.entries().size(), expected.size());
  for (const auto& entry : counts.entries()) {
    EXPECT_EQ(entry.output_count, expected.at(entry.token)) << entry.token;
  }
}

TEST(Penalties, FollowTheirFormulas) {
  SamplingParams params;
  params.repetition_penalty = 1.5f;
  params.presence_penalty = 0.25f;
  params.frequency_penalty = 0.5f;
  const std::vector<TokenId> prompt = {0, 1};
  TokenCounts counts(prompt, 10);
  counts.add(1);
  counts.add(2);
  counts.add(2);
  std::vector<float> row = {3, -3, 3, 3};
  apply_penalties(params, counts, row);
  EXPECT_FLOAT_EQ(row[0], 3 / 1.5f) << "prompt only: no presence, no frequency";
  EXPECT_FLOAT_EQ(row[1], -3 * 1.5f - 0.5f - 0.25f);
  EXPECT_FLOAT_EQ(row[2], 3 / 1.5f - 2 * 0.5f - 0.25f);
  EXPECT_FLOAT_EQ(row[3], 3) << "never seen";
}

TEST(Masks, TakeTokensOut) {
  std::vector<float> row(40, 1);
  mask_tokens(std::vector<TokenId>{3, 39}, row);
  const std::vector<std::uint32_t> bitmask = {0xFFFFFFFEu, 0xFFFFFFFFu};
  apply_bitmask(bitmask, row);
  for (std::size_t i = 0; i < row.size(); ++i) {
    EXPECT_EQ(std::isinf(row[i]), i == 0 || i == 3 || i == 39) << i;
  }
}

}  // namespace
}  // namespace dunlin
