#include "eval/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>

#include "sampling/logprobs.h"
#include "support/fake_model.h"
#include "support/fake_tokenizer.h"

namespace dunlin::eval {
namespace {

std::string some_text(int length) {
  std::string text;
  for (int i = 0; i < length; ++i) text += static_cast<char>('a' + i * i % 23);
  return text;
}

TEST(Chunks, AreTheTokensInARowWithBosInPlaceOfTheFirst) {
  const FakeTokenizer tokenizer;
  const std::string text = some_text(34);
  const auto chunks = cut_into_chunks(tokenizer, text + "\n", 8, 0);
  ASSERT_TRUE(chunks.has_value());
  ASSERT_EQ(chunks->ids.size(), 4u) << "BOS and 34 bytes; three are left over";
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_EQ(chunks->ids[i].size(), 8u);
    EXPECT_EQ(chunks->ids[i][0], FakeTokenizer::kBos);
    for (std::size_t k = 1; k < 8; ++k)
      EXPECT_EQ(chunks->ids[i][k], static_cast<TokenId>(text[i * 8 + k - 1]));
  }
  EXPECT_EQ(chunks->first_scored, 5);
  EXPECT_EQ(chunks->num_scored(), 3);
  EXPECT_EQ(cut_into_chunks(tokenizer, text, 8, 2)->ids.size(), 2u);
  EXPECT_EQ(cut_into_chunks(tokenizer, text, 35, 0)->ids.size(), 1u);
  EXPECT_EQ(cut_into_chunks(tokenizer, text, 36, 0).error().message(),
            "the text has 35 tokens, but a chunk takes 36; give a longer text or a smaller "
            "--context");
}

TEST(MeanSum, GivesMeanAndStandardError) {
  MeanSum sum;
  for (const double value : {1.0, 2.0, 3.0, 6.0}) sum.add(value);
  EXPECT_DOUBLE_EQ(sum.mean().value, 3);
  EXPECT_DOUBLE_EQ(sum.mean().error, std::sqrt(3.5 / 3));
  EXPECT_EQ(MeanSum().mean().error, 0);
}

TEST(Perplexity, IsThatOfTheSecondHalvesOfTheChunks) {
  EngineConfig config;
  configure_scoring(config, 32);
  config.max_seqs = 3;
  const testing::FakeModel reference({0}, 258);
  auto engine =
      Engine::create(std::make_unique<testing::FakeModel>(std::vector<int>{0}, 258), config);
  ASSERT_TRUE(engine.has_value()) << engine.error().message();
  const auto chunks = cut_into_chunks(FakeTokenizer(), some_text(400), 32, 0).value();
  std::vector<int> told;
  const auto found = measure_perplexity(**engine, chunks, [&](int done, int total) {
    told.push_back(done);
    EXPECT_EQ(total, 12);
  });
  ASSERT_TRUE(found.has_value()) << found.error().message();
  std::vector<int> all(12);
  std::iota(all.begin(), all.end(), 1);
  EXPECT_EQ(told, all);
  double nll = 0;
  std::vector<Candidate> scratch;
  for (const auto& ids : chunks.ids)
    for (std::size_t i = 17; i < 32; ++i) {
      const auto row = testing::fake_row(reference.kv_layout(), std::span(ids).first(i), 258);
      nll -= static_cast<double>(compute_logprobs(row, ids[i], 0, scratch).logprob);
    }
  EXPECT_EQ(found->num_chunks, 12);
  EXPECT_EQ(found->num_scored, 12 * 15);
  EXPECT_NEAR(found->nll.value, nll / (12 * 15), 1e-9);
  EXPECT_NEAR(exp_of(found->nll).value, std::exp(nll / (12 * 15)), 1e-6);
  EXPECT_NEAR(exp_of(found->nll).error, exp_of(found->nll).value * found->nll.error, 1e-9);
}

TEST(Perplexity, OfStretchesGoesOnBehindTheContextUnderAWindow) {
  EngineConfig config{.max_context = 96, .max_seqs = 1, .max_batch_tokens = 40};
  config.kv_policy = {KvPolicyType::kWindow, 4, 32};
  auto engine =
      Engine::create(std::make_unique<testing::FakeModel>(std::vector<int>{0}, 258), config);
  ASSERT_TRUE(engine.has_value()) << engine.error().message();
  const std::string text = some_text(400);
  int last_told = 0;
  const auto found = measure_stretches(**engine, FakeTokenizer(), text, 150, 60,
                                       [&](int done, int) { last_told = done; });
  ASSERT_TRUE(found.has_value()) << found.error().message();
  ASSERT_EQ(found->size(), 3u);
  EXPECT_EQ(last_told, 150);
  const auto ids = cut_into_chunks(FakeTokenizer(), text, 150, 1)->ids[0];
  const testing::FakeModel model({0}, 258);
  std::vector<Candidate> scratch;
  for (const Stretch& stretch : *found) {
    double nll = 0;
    const int first = std::max(stretch.begin, 1);
    for (int i = first; i < stretch.end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto row =
          testing::fake_row(model.kv_layout(), std::span(ids).first(at), 258, config.kv_policy);
      nll -= static_cast<double>(compute_logprobs(row, ids[at], 0, scratch).logprob);
    }
    EXPECT_NEAR(stretch.nll.value, nll / (stretch.end - first), 1e-9) << stretch.begin;
  }
  EXPECT_EQ(found->back().begin, 120);
  EXPECT_EQ(found->back().end, 150);
  const auto too_long = measure_stretches(**engine, FakeTokenizer(), text, 500, 60, {});
  ASSERT_FALSE(too_long.has_value());
  EXPECT_NE(too_long.error().message().find("500"), std::string::npos);
}

TEST(Perplexity, TellsWhatTheEngineRefuses) {
  EngineConfig config;
  config.max_context = 48;
  auto engine =
      Engine::create(std::make_unique<testing::FakeModel>(std::vector<int>{0}, 258), config);
  ASSERT_TRUE(engine.has_value()) << engine.error().message();
  const auto chunks = cut_into_chunks(FakeTokenizer(), some_text(400), 64, 0).value();
  const auto found = measure_perplexity(**engine, chunks, {});
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace dunlin::eval
