// Choices over one prompt.
#include <gtest/gtest.h>

#include "support/engine_harness.h"
#include "support/gated_engine.h"

namespace dunlin {
namespace {

using testing::CoreHarness;
using testing::expected_output;
using testing::Gate;
using testing::make_engine;
using testing::make_request;
using testing::random_prompt;
using testing::read_all;
using testing::small_config;

// n choices give what n requests give that differ in choice_idx, and compute the prompt once.
TEST(Choices, ChoicesShareTheirPromptAndGiveWhatSingleRequestsGive) {
  for (const auto& windows : {std::vector<int>{0}, std::vector<int>{0, 24}, std::vector<int>{40}}) {
    for (const bool prefix_cache : {true, false}) {
      for (const int length : {1, 31, 32, 33, 150}) {
        SCOPED_TRACE(::testing::Message() << "prompt " << length << " cache " << prefix_cache);
        EngineRequest request = make_request(random_prompt(6, length), 40);
        request.sampling.temperature = 1;
        request.sampling.seed = 9;
        request.sampling.frequency_penalty = 0.3f;
        EngineConfig config{.max_context = 256, .max_batch_tokens = 64};
        config.prefix_cache = prefix_cache;
        CoreHarness together(windows, config, 200);
        const RequestId first = together.add(request, 4);
        together.run_all();
        EXPECT_EQ(together.core().stats().num_prompt_tokens, std::uint64_t(length));
        EXPECT_EQ(together.core().stats().num_free_blocks, 200);
        CoreHarness alone(windows, config, 200);
        for (std::uint32_t i = 0; i < 4; ++i) {
          request.sampling.choice_idx = i;
          const RequestId id = alone.add(request);
          alone.run_all();
          ASSERT_EQ(together.tokens(first + i), alone.tokens(id)) << "choice " << i;
        }
        EXPECT_NE(together.tokens(first), together.tokens(first + 1));
      }
    }
  }
}

TEST(Choices, ChoicesBesideOthersInLittleMemoryAreTheSame) {
  CoreHarness harness({0}, {.max_context = 128, .max_seqs = 6, .max_batch_tokens = 20}, 12);
  const auto prompt = random_prompt(6, 50);
  for (unsigned i = 0; i < 4; ++i) harness.add(make_request(random_prompt(50 + i, 30), 40));
  const RequestId first = harness.add(make_request(prompt, 60), 5);
  harness.run_all();
  for (RequestId id = first; id < first + 5; ++id)
    EXPECT_EQ(harness.tokens(id), expected_output({0}, prompt, 60));
  EXPECT_GT(harness.core().stats().num_preemptions, 0u);
}

TEST(Choices, MoreChoicesThanSlotsAreComputedToo) {
  CoreHarness harness({0}, {.max_context = 128, .max_seqs = 3, .max_batch_tokens = 20}, 64);
  const auto prompt = random_prompt(6, 50);
  const RequestId first = harness.add(make_request(prompt, 10), 8);
  harness.run_all();
  for (RequestId id = first; id < first + 8; ++id)
    EXPECT_EQ(harness.tokens(id), expected_output({0}, prompt, 10));
}

TEST(Choices, ChoicesGoOnWithoutTheOneThatBegan) {
  CoreHarness harness({0}, {.max_context = 128, .max_seqs = 4, .max_batch_tokens = 16}, 64);
  const auto prompt = random_prompt(6, 50);
  const RequestId first = harness.add(make_request(prompt, 10), 3);
  harness.step();
  harness.abort(first);
  harness.run_all();
  for (RequestId id = first + 1; id < first + 3; ++id)
    EXPECT_EQ(harness.tokens(id), expected_output({0}, prompt, 10));
  EXPECT_EQ(harness.core().stats().num_free_blocks, 64);
}

TEST(Choices, EveryChoiceTellsTheLogprobsOfThePrompt) {
  CoreHarness harness({0}, {.max_context = 128, .max_seqs = 4}, 64);
  EngineRequest request = make_request(random_prompt(6, 50), 1);
  request.echo_logprobs = true;
  request.sampling.num_logprobs = 1;
  const RequestId first = harness.add(request, 3);
  harness.run_all();
  EXPECT_EQ(harness.core().stats().num_prompt_tokens, 50u);
  for (RequestId id = first; id < first + 3; ++id) {
    ASSERT_EQ(harness.last(id).prompt_logprobs.size(), 50u);
    EXPECT_EQ(harness.last(id).prompt_logprobs[49].top,
              harness.last(first).prompt_logprobs[49].top);
  }
}

TEST(Choices, AreTakenTogetherOrNotAtAll) {
  Gate gate;
  auto config = small_config();
  config.max_queue = 3;
  auto engine = make_engine(config, &gate);
  EXPECT_EQ(engine->submit_choices(make_request(random_prompt(1, 5), 3), 4).error().message(),
            "4 choices are asked for, but the queue takes 3 at most; ask for fewer or raise "
            "--max-queue");
  auto running = engine->submit(make_request(random_prompt(1, 5), 3)).value();
  gate.wait_for_arrivals(1);
  auto waiting = engine->submit(make_request(random_prompt(1, 5), 3)).value();
  const auto refused = engine->submit_choices(make_request(random_prompt(2, 5), 3), 3);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), StatusCode::kResourceExhausted);
  gate.open();
  read_all(*running);
  read_all(*waiting);
  const auto prompt = random_prompt(3, 5);
  const auto streams = engine->submit_choices(make_request(prompt, 3), 3).value();
  for (const auto& stream : streams) EXPECT_EQ(read_all(*stream), expected_output({0}, prompt, 3));
}

}  // namespace
}  // namespace dunlin
