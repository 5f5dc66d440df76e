#include "sampling/params.h"

#include <cmath>
#include <functional>
#include <string>

#include <gtest/gtest.h>

namespace dunlin {
namespace {

std::string message_of(const std::function<void(SamplingParams&)>& change) {
  SamplingParams params;
  params.max_tokens = 10;
  change(params);
  const Outcome outcome = validate(params, 100);
  if (outcome) return "";
  EXPECT_EQ(outcome.error().code(), StatusCode::kInvalidArgument);
  return outcome.error().message();
}

TEST(SamplingParams, DefaultsAreValid) {
  EXPECT_EQ(message_of([](auto&) {}), "");
}

TEST(SamplingParams, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(message_of([](auto& p) { p.top_p = 3; }), "top_p must be in (0, 1], got 3");
  EXPECT_EQ(message_of([](auto& p) { p.top_p = 0; }), "top_p must be in (0, 1], got 0");
  EXPECT_EQ(message_of([](auto& p) { p.temperature = -0.5; }),
            "temperature must be in [0, 1e30], got -0.5");
  EXPECT_EQ(message_of([](auto& p) { p.presence_penalty = 2.5; }),
            "presence_penalty must be in [-2, 2], got 2.5");
  EXPECT_EQ(message_of([](auto& p) { p.min_tokens = 11; }),
            "min_tokens must be in [0, max_tokens = 10], got 11");
  EXPECT_EQ(message_of([](auto& p) { p.logit_bias = {{100, 1}}; }),
            "logit_bias names token 100, but the vocabulary has 100 tokens");
  EXPECT_EQ(message_of([](auto& p) { p.stop_token_ids = {-1}; }),
            "stop_token_ids names token -1, but the vocabulary has 100 tokens");
  EXPECT_NE(message_of([](auto& p) { p.num_logprobs = 1000; }), "");
  EXPECT_NE(message_of([](auto& p) { p.top_k = -1; }), "");
  EXPECT_NE(message_of([](auto& p) { p.repetition_penalty = 0; }), "");
  EXPECT_NE(message_of([](auto& p) { p.frequency_penalty = -3; }), "");
  EXPECT_NE(message_of([](auto& p) { p.stop_token_ids.assign(1000, 1); }), "");
}

TEST(SamplingParams, RefusesWhatIsNotANumber) {
  EXPECT_NE(message_of([](auto& p) { p.temperature = NAN; }), "");
  EXPECT_NE(message_of([](auto& p) { p.temperature = INFINITY; }), "");
  EXPECT_NE(message_of([](auto& p) { p.top_p = NAN; }), "");
  EXPECT_NE(message_of([](auto& p) { p.min_p = NAN; }), "");
  EXPECT_NE(message_of([](auto& p) { p.repetition_penalty = NAN; }), "");
  EXPECT_NE(message_of([](auto& p) { p.logit_bias = {{1, NAN}}; }), "");
}

}  // namespace
}  // namespace dunlin
