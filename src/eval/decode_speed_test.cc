#include "eval/decode_speed.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/fake_model.h"

namespace dunlin::eval {
namespace {

TEST(DecodeSpeed, GoesOnBehindThePromptEachTime) {
  EngineConfig config{.max_context = 64, .max_seqs = 1, .max_batch_tokens = 16};
  auto engine =
      Engine::create(std::make_unique<testing::FakeModel>(std::vector<int>{0}, 258), config);
  ASSERT_TRUE(engine.has_value()) << engine.error().message();
  const std::vector<TokenId> prompt(40, 7);
  std::vector<int> told;
  const auto speed = measure_decode_speed(**engine, prompt, {.num_tokens = 8, .num_repetitions = 3},
                                          [&](int done, int) { told.push_back(done); });
  ASSERT_TRUE(speed.has_value()) << speed.error().message();
  EXPECT_GT(*speed, 0);
  EXPECT_EQ(told, (std::vector<int>{1, 2, 3}));
}

TEST(DecodeSpeed, SaysWhatTheContextCannotHold) {
  EngineConfig config{.max_context = 64, .max_seqs = 1, .max_batch_tokens = 16};
  auto engine =
      Engine::create(std::make_unique<testing::FakeModel>(std::vector<int>{0}, 258), config);
  ASSERT_TRUE(engine.has_value());
  const std::vector<TokenId> prompt(60, 7);
  const auto speed = measure_decode_speed(**engine, prompt, {.num_tokens = 8}, {});
  ASSERT_FALSE(speed.has_value());
  EXPECT_NE(speed.error().message().find("64"), std::string::npos) << speed.error().message();
}

}  // namespace
}  // namespace dunlin::eval
