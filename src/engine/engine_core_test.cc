#include "engine/engine_core.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "support/engine_harness.h"

namespace dunlin {
namespace {

using testing::CoreHarness;
using testing::expected_output;
using testing::make_request;
using testing::random_prompt;

TEST(EngineCore, ARequestAloneGivesWhatTheModelSays) {
  CoreHarness harness({0}, {.max_context = 256}, 64);
  const auto prompt = random_prompt(1, 40);
  const RequestId id = harness.add(make_request(prompt, 20));
  harness.run_all();
  EXPECT_EQ(harness.tokens(id), expected_output({0}, prompt, 20));
  EXPECT_EQ(harness.last(id).finish, FinishReason::kLength);
}

TEST(EngineCore, PrefillInChunksGivesTheSameTokens) {
  const auto prompt = random_prompt(2, 100);
  for (const int chunk : {1, 7, 16, 33, 100}) {
    CoreHarness harness({0, 24}, {.max_context = 256, .max_seqs = 1, .max_batch_tokens = chunk},
                        64);
    const RequestId id = harness.add(make_request(prompt, 20));
    harness.run_all();
    EXPECT_EQ(harness.tokens(id), expected_output({0, 24}, prompt, 20)) << "chunk " << chunk;
    EXPECT_EQ(harness.core().stats().num_steps,
              static_cast<std::uint64_t>((99 + chunk) / chunk + 19));
  }
}

TEST(EngineCore, ManyTogetherGiveTheSameAsEachAlone) {
  CoreHarness harness({0, 24}, {.max_context = 256, .max_seqs = 8, .max_batch_tokens = 24}, 300);
  std::map<RequestId, std::pair<std::vector<TokenId>, int>> requests;
  for (unsigned i = 0; i < 20; ++i) {
    const auto prompt = random_prompt(i, 1 + static_cast<int>(i * 13 % 90));
    const int max_tokens = 1 + static_cast<int>(i * 7 % 40);
    requests[harness.add(make_request(prompt, max_tokens))] = {prompt, max_tokens};
    harness.step();
  }
  harness.run_all();
  for (const auto& [id, r] : requests) {
    EXPECT_EQ(harness.tokens(id), expected_output({0, 24}, r.first, r.second)) << id;
  }
}

// A third of the blocks that all need: preemption is certain, the answers are the same.
TEST(EngineCore, WithAThirdOfTheBlocksEveryRequestFinishesWithItsSoloAnswer) {
  for (const auto& windows : {std::vector<int>{0}, std::vector<int>{0, 24, 24}}) {
    constexpr int kRequests = 9;
    const int groups = static_cast<int>(windows.size());
    const int all = kRequests * groups * num_blocks_for(60 + 50);
    CoreHarness harness(windows, {.max_context = 112, .max_seqs = 9, .max_batch_tokens = 32},
                        all / 3);
    std::map<RequestId, std::vector<TokenId>> prompts;
    for (unsigned i = 0; i < kRequests; ++i) {
      const auto prompt = random_prompt(100 + i, 20 + static_cast<int>(i) * 5);
      prompts[harness.add(make_request(prompt, 50))] = prompt;
    }
    harness.run_all();
    for (const auto& [id, prompt] : prompts) {
      EXPECT_EQ(harness.tokens(id), expected_output(windows, prompt, 50)) << id;
    }
    EXPECT_GT(harness.core().stats().num_preemptions, 0u);
    EXPECT_LT(harness.core().stats().num_preemptions, 60u) << "thrash";
  }
}

TEST(EngineCore, SamplesTheSameWithASeedWhateverElseRuns) {
  const auto prompt = random_prompt(3, 30);
  EngineRequest request = make_request(prompt, 30);
  request.sampling.temperature = 1;
  request.sampling.top_p = 0.9f;
  request.sampling.seed = 5;
  request.sampling.repetition_penalty = 1.3f;
  request.sampling.frequency_penalty = 0.5f;
  CoreHarness alone({0}, {.max_context = 128}, 64);
  const RequestId first = alone.add(request);
  alone.run_all();
  CoreHarness crowded({0}, {.max_context = 128, .max_seqs = 6, .max_batch_tokens = 20}, 16);
  for (unsigned i = 0; i < 5; ++i) crowded.add(make_request(random_prompt(50 + i, 30), 40));
  const RequestId second = crowded.add(request);
  crowded.run_all();
  EXPECT_EQ(alone.tokens(first), crowded.tokens(second));
  EXPECT_GT(crowded.core().stats().num_preemptions, 0u);
  request.sampling.seed = 6;
  const RequestId third = alone.add(request);
  alone.run_all();
  EXPECT_NE(alone.tokens(first), alone.tokens(third));
}

TEST(EngineCore, StopsAtTheModelsEndAndAtStopTokens) {
  const auto prompt = random_prompt(4, 20);
  const auto free_run = expected_output({0}, prompt, 30);
  const TokenId end = free_run[10];
  const auto first =
      static_cast<std::size_t>(std::find(free_run.begin(), free_run.end(), end) - free_run.begin());
  CoreHarness harness({0}, {.max_context = 128}, 64);

  EngineRequest request = make_request(prompt, 30);
  request.eos_ids = {end};
  const RequestId at_end = harness.add(request);
  request.sampling.ignore_eos = true;
  const RequestId ignoring = harness.add(request);
  request.eos_ids.clear();
  request.sampling.stop_token_ids = {end};
  const RequestId at_stop = harness.add(request);
  harness.run_all();
  const std::vector<TokenId> stopped(free_run.begin(), free_run.begin() + int(first) + 1);
  EXPECT_EQ(harness.tokens(at_end), stopped);
  EXPECT_EQ(harness.last(at_end).finish, FinishReason::kStop);
  EXPECT_EQ(harness.tokens(ignoring), free_run);
  EXPECT_EQ(harness.last(ignoring).finish, FinishReason::kLength);
  EXPECT_EQ(harness.tokens(at_stop), stopped) << "stop tokens count under ignore_eos";
}

TEST(EngineCore, MinTokensHoldsTheEndBack) {
  const auto prompt = random_prompt(4, 20);
  const auto free_run = expected_output({0}, prompt, 30);
  EngineRequest request = make_request(prompt, 30);
  request.eos_ids = {free_run[2]};
  request.sampling.min_tokens = 8;
  CoreHarness harness({0}, {.max_context = 128}, 64);
  const RequestId id = harness.add(request);
  harness.run_all();
  const auto tokens = harness.tokens(id);
  ASSERT_GE(tokens.size(), 9u);
  EXPECT_EQ(std::count(tokens.begin(), tokens.begin() + 8, free_run[2]), 0);
}

TEST(EngineCore, TheNextTurnOfAChatFindsThePastInTheCache) {
  for (const auto& windows : {std::vector<int>{0}, std::vector<int>{0, 24}}) {
    CoreHarness harness(windows, {.max_context = 512}, 200);
    auto prompt = random_prompt(6, 50);
    const RequestId first = harness.add(make_request(prompt, 30));
    harness.run_all();
    const auto answer = harness.tokens(first);
    prompt.insert(prompt.end(), answer.begin(), answer.end());
    const auto question = random_prompt(7, 10);
    prompt.insert(prompt.end(), question.begin(), question.end());
    const RequestId second = harness.add(make_request(prompt, 30));
    harness.run_all();
    EXPECT_EQ(harness.tokens(second), expected_output(windows, prompt, 30));
    // 50 + 30 tokens, the last of which was never computed: four whole blocks.
    EXPECT_EQ(harness.last(second).stats.num_cached_tokens, 64);
    EXPECT_EQ(harness.core().stats().prefix_hits, 64u);
    EXPECT_EQ(harness.core().stats().prefix_queries, 50u + 90u);
    EXPECT_EQ(harness.core().stats().num_prompt_tokens, 50u + 90u - 64u);
  }
}

TEST(EngineCore, EqualPromptsThatComeTogetherAreComputedOnce) {
  CoreHarness harness({0, 24}, {.max_context = 256, .max_batch_tokens = 64}, 200);
  const auto prompt = random_prompt(6, 150);
  std::vector<RequestId> ids;
  for (std::uint32_t choice = 0; choice < 4; ++choice) {
    EngineRequest request = make_request(prompt, 10);
    request.sampling.temperature = 1;
    request.sampling.choice_idx = choice;
    ids.push_back(harness.add(request));
  }
  harness.run_all();
  // 150 once, and what is behind the last whole block for the other three.
  EXPECT_EQ(harness.core().stats().num_prompt_tokens, 150u + 3 * 6u);
  EXPECT_NE(harness.tokens(ids[0]), harness.tokens(ids[1]));
  EXPECT_EQ(harness.tokens(ids[3]).size(), 10u);
}

TEST(EngineCore, RequestsOfDifferentSaltsNeitherShareNorWaitForEachOther) {
  CoreHarness harness({0, 24}, {.max_context = 256, .max_batch_tokens = 256}, 200);
  const auto prompt = random_prompt(6, 50);
  const auto add = [&](std::string salt) {
    EngineRequest request = make_request(prompt, 10);
    request.cache_salt = std::move(salt);
    return harness.add(std::move(request));
  };
  const RequestId ids[] = {add(""), add("a"), add("b"), add("a")};
  harness.step();
  EXPECT_EQ(harness.core().stats().num_running, 3) << "the second \"a\" waits for the first";
  harness.run_all();
  for (const RequestId id : ids) {
    EXPECT_EQ(harness.tokens(id), expected_output({0, 24}, prompt, 10));
    EXPECT_EQ(harness.last(id).stats.num_cached_tokens, id == ids[3] ? 48 : 0);
  }
  const RequestId again = add("b");
  harness.run_all();
  EXPECT_EQ(harness.last(again).stats.num_cached_tokens, 48);
}

// What a preempted sequence computed stays cached until someone needs the room.
TEST(EngineCore, APreemptedRequestFindsItsBlocksAgain) {
  for (const auto& windows : {std::vector<int>{0}, std::vector<int>{0, 24}}) {
    CoreHarness harness(windows, {.max_context = 160, .max_seqs = 2, .max_batch_tokens = 64},
                        windows.size() == 1 ? 10 : 17);
    const auto first = random_prompt(1, 40), second = random_prompt(2, 64);
    const RequestId old = harness.add(make_request(first, 100));
    const RequestId fresh = harness.add(make_request(second, 60));
    for (int i = 0; harness.core().stats().num_preemptions == 0; ++i) {
      ASSERT_LT(i, 100) << "memory never ran out";
      harness.step();
    }
    EXPECT_EQ(harness.core().stats().num_running, 1);
    harness.abort(old);
    harness.run_all();
    EXPECT_EQ(harness.tokens(fresh), expected_output(windows, second, 60));
    EXPECT_EQ(harness.last(fresh).stats.num_preemptions, 1);
    EXPECT_EQ(harness.core().stats().num_prompt_tokens, 40u + 64u)
        << "no prompt was computed twice";
  }
}

TEST(EngineCore, WithoutThePrefixCacheNothingIsFound) {
  CoreHarness harness({0}, {.max_context = 128, .prefix_cache = false}, 64);
  const auto prompt = random_prompt(6, 50);
  for (int i = 0; i < 2; ++i) {
    const RequestId id = harness.add(make_request(prompt, 5));
    harness.run_all();
    EXPECT_EQ(harness.last(id).stats.num_cached_tokens, 0);
    EXPECT_EQ(harness.tokens(id), expected_output({0}, prompt, 5));
  }
  EXPECT_EQ(harness.core().stats().num_cached_blocks, 0);
}

TEST(EngineCore, AbortFreesTheBlocksAtEveryStage) {
  CoreHarness harness({0}, {.max_context = 128, .max_seqs = 2, .max_batch_tokens = 16}, 64);
  const RequestId decoding = harness.add(make_request(random_prompt(1, 10), 100));
  harness.step();
  harness.step();
  const RequestId in_prefill = harness.add(make_request(random_prompt(2, 100), 20));
  const RequestId queued = harness.add(make_request(random_prompt(3, 10), 20));
  harness.step();
  const auto stats = harness.core().stats();
  EXPECT_EQ(stats.num_running, 2);
  EXPECT_EQ(stats.num_waiting, 1);
  for (const RequestId id : {queued, in_prefill, decoding}) {
    harness.abort(id);
    EXPECT_EQ(harness.last(id).finish, FinishReason::kCancelled);
  }
  EXPECT_EQ(harness.core().stats().num_free_blocks, 64);
  EXPECT_FALSE(harness.core().has_work());
  EXPECT_EQ(harness.core().stats().finished_cancelled, 3u);
  harness.abort(decoding);
  EXPECT_EQ(harness.core().stats().finished_cancelled, 3u) << "a second abort does nothing";
}

TEST(EngineCore, EchoTellsTheLogprobsOfThePrompt) {
  const auto prompt = random_prompt(8, 100);
  // In small steps and beside another, with preemption on the way.
  CoreHarness harness({0}, {.max_context = 128, .max_seqs = 2, .max_batch_tokens = 64}, 9);
  const RequestId other = harness.add(make_request(random_prompt(9, 20), 60));
  EngineRequest request = make_request(prompt, 3);
  request.echo_logprobs = true;
  request.sampling.num_logprobs = 2;
  const RequestId id = harness.add(request);
  harness.run_all();
  EXPECT_EQ(harness.tokens(other).size(), 60u);
  EXPECT_EQ(harness.tokens(id), expected_output({0}, prompt, 3));
  const auto& first = harness.outputs(id).front();
  ASSERT_EQ(first.prompt_logprobs.size(), prompt.size());
  std::vector<Candidate> scratch;
  for (std::size_t i = 1; i < prompt.size(); ++i) {
    const auto row = testing::fake_row(harness.layout(), std::span(prompt).first(i), 61);
    const auto expected = compute_logprobs(row, prompt[i], 2, scratch);
    ASSERT_EQ(first.prompt_logprobs[i].logprob, expected.logprob) << i;
    ASSERT_EQ(first.prompt_logprobs[i].top, expected.top) << i;
  }
  EXPECT_TRUE(harness.outputs(id).back().prompt_logprobs.empty());
  EXPECT_TRUE(first.logprobs.has_value());
}

// What stands before echo_start may come from the cache; the logits behind it are told in order,
// whatever the steps are and who is preempted.
TEST(EngineCore, EchoFromATokenOnTellsItsLogits) {
  const auto prompt = random_prompt(8, 100);
  for (const int num_blocks : {9, 64})
    for (const int start : {0, 1, 2, 17, 64, 99}) {
      CoreHarness harness({0}, {.max_context = 128, .max_seqs = 2, .max_batch_tokens = 48},
                          num_blocks);
      harness.add(make_request(prompt, 1));
      harness.run_all();
      const RequestId other = harness.add(make_request(random_prompt(9, 20), 60));
      EngineRequest request = make_request(prompt, 0);
      request.echo_logprobs = true;
      request.echo_start = start;
      int next = std::max(start, 1);
      request.on_prompt_logits = [&](int position, std::span<const float> logits) {
        ASSERT_EQ(position, next++);
        const auto tokens = std::span(prompt).first(static_cast<std::size_t>(position));
        ASSERT_TRUE(std::ranges::equal(logits, testing::fake_row(harness.layout(), tokens, 61)));
      };
      const RequestId id = harness.add(request);
      harness.run_all();
      EXPECT_EQ(next, 100);
      EXPECT_EQ(harness.tokens(other).size(), 60u);
      const TokenOutput& output = harness.last(id);
      const int most = start < 2 ? 0 : (start - 1) / kBlockSize * kBlockSize;
      EXPECT_LE(output.stats.num_cached_tokens, most);
      if (num_blocks == 64) {
        EXPECT_EQ(output.stats.num_cached_tokens, most);
      }
      ASSERT_EQ(output.prompt_logprobs.size(), prompt.size());
      const auto first = static_cast<std::size_t>(std::max(start, 1));
      EXPECT_EQ(output.prompt_logprobs[first - 1].logprob, 0);
      EXPECT_LT(output.prompt_logprobs[first].logprob, 0);
    }
}

TEST(EngineCore, ScoresAPromptWithoutGenerating) {
  const auto prompt = random_prompt(8, 40);
  CoreHarness harness({0}, {.max_context = 64}, 9);
  EngineRequest request = make_request(prompt, 0);
  request.echo_logprobs = true;
  request.sampling.num_logprobs = 0;
  const RequestId id = harness.add(request);
  harness.run_all();
  ASSERT_EQ(harness.outputs(id).size(), 1u);
  EXPECT_EQ(harness.last(id).prompt_logprobs.size(), 40u);
  EXPECT_EQ(harness.last(id).finish, FinishReason::kLength);
  EXPECT_FALSE(harness.last(id).token.has_value());
}

class NothingAllowed : public TokenConstraint {
 public:
  void fill_bitmask(std::span<std::uint32_t> bitmask) override {
    std::fill(bitmask.begin(), bitmask.end(), 0);
  }
  void accept(TokenId) override {}
  void rollback(int) override {}
};

TEST(EngineCore, ARequestThatAllowsNoTokenEndsWithAnErrorAndTheOthersGoOn) {
  CoreHarness harness({0}, {.max_context = 64}, 9);
  EngineRequest request = make_request(random_prompt(1, 5), 10);
  request.constraint = std::make_shared<NothingAllowed>();
  const RequestId bad = harness.add(request);
  const RequestId good = harness.add(make_request(random_prompt(2, 5), 10));
  harness.run_all();
  EXPECT_EQ(harness.last(bad).finish, FinishReason::kError);
  ASSERT_TRUE(harness.last(bad).error.has_value());
  EXPECT_EQ(harness.tokens(good).size(), 10u);
}

TEST(EngineCore, CountsAndTimesEachRequest) {
  CoreHarness harness({0}, {.max_context = 64}, 9);
  const RequestId id = harness.add(make_request(random_prompt(1, 20), 10));
  harness.run_all();
  const RequestStats& stats = harness.last(id).stats;
  EXPECT_EQ(stats.num_prompt_tokens, 20);
  EXPECT_EQ(stats.num_output_tokens, 10);
  EXPECT_EQ(stats.num_chunks, 1);
  EXPECT_EQ(stats.num_preemptions, 0);
  EXPECT_GE(stats.first_token_time_s, stats.queue_time_s);
  EXPECT_GE(stats.total_time_s, stats.first_token_time_s);
  const EngineStats& all = harness.core().stats();
  EXPECT_EQ(all.num_prompt_tokens, 20u);
  EXPECT_EQ(all.num_generated_tokens, 10u);
  EXPECT_EQ(all.finished_length, 1u);
  EXPECT_EQ(all.num_steps, 10u);
  EXPECT_EQ(all.model.num_forwards, 10u);
  EXPECT_EQ(all.histograms.time_to_first_token.count(), 1u);
  EXPECT_EQ(all.histograms.inter_token.count(), 9u);
  EXPECT_EQ(all.histograms.e2e.count(), 1u);
  EXPECT_EQ(all.histograms.step_tokens.sum(), 29);
  EXPECT_GT(all.prefill_time_s, 0);
  EXPECT_GT(all.decode_time_s, 0);
}

}  // namespace
}  // namespace dunlin
