// Requests of different KV policies in one engine: each gets the tokens of its own policy, whatever
// the others do, however its prompt is cut, and through preemption and the prefix cache.
#include <gtest/gtest.h>

#include "model/loader.h"
#include "support/engine_harness.h"
#include "support/random_weights.h"

namespace dunlin {
namespace {

using testing::CoreHarness;
using testing::expected_output;
using testing::make_request;
using testing::random_prompt;

constexpr KvPolicy kWindow{KvPolicyType::kWindow, 4, 32};
constexpr KvPolicy kOtherWindow{KvPolicyType::kWindow, 20, 48};
constexpr KvPolicy kQuest{.type = KvPolicyType::kQuest, .budget = 48};
constexpr KvPolicy kH2o{.type = KvPolicyType::kH2o, .budget = 48};
constexpr KvPolicy kSnapKv{.type = KvPolicyType::kSnapKv, .budget = 48, .observed = 16};
constexpr KvPolicy kPolicies[] = {{}, kWindow, kOtherWindow, kQuest, kH2o, kSnapKv};
constexpr unsigned kNumPolicies = std::size(kPolicies);

EngineRequest with(EngineRequest request, const KvPolicy& policy) {
  request.kv_policy = policy;
  return request;
}

TEST(KvPolicies, EachRequestGetsItsOwnInOneBatch) {
  for (const int chunk : {6, 40}) {
    // Few blocks, so that some are preempted.
    const std::vector<int> windows = {0, 24};
    CoreHarness harness(windows, {.max_context = 400, .max_seqs = 6, .max_batch_tokens = chunk},
                        24);
    std::vector<RequestId> ids;
    const auto prompt_of = [](unsigned i) {
      return random_prompt(i / kNumPolicies, 30 + static_cast<int>(i / kNumPolicies) * 37);
    };
    for (unsigned i = 0; i < 3 * kNumPolicies; ++i) {
      ids.push_back(harness.add(with(make_request(prompt_of(i), 90), kPolicies[i % kNumPolicies])));
      harness.step();
    }
    harness.run_all();
    for (unsigned i = 0; i < 3 * kNumPolicies; ++i) {
      EXPECT_EQ(harness.tokens(ids[i]),
                expected_output(windows, prompt_of(i), 90, kPolicies[i % kNumPolicies]))
          << "request " << i << ", chunk " << chunk;
    }
    EXPECT_GT(harness.core().stats().num_preemptions, 0u) << chunk;
    EXPECT_EQ(harness.core().stats().num_free_blocks, 24);
  }
}

TEST(KvPolicies, ThePrefixCacheServesOnlyWhatFullAttentionWrote) {
  CoreHarness harness({0}, {.max_context = 400, .max_seqs = 2, .max_batch_tokens = 64}, 200);
  const auto prompt = random_prompt(3, 200);
  const auto ask = [&](const KvPolicy& policy) {
    const RequestId id = harness.add(with(make_request(prompt, 20), policy));
    harness.run_all();
    EXPECT_EQ(harness.tokens(id), expected_output({0}, prompt, 20, policy));
    return harness.last(id).stats.num_cached_tokens;
  };
  EXPECT_EQ(ask(kWindow), 0);
  EXPECT_LE(ask({}), 32) << "the window's first block may have gone already";
  EXPECT_EQ(ask({}), 192);
  EXPECT_EQ(ask(kWindow), 32);
  EXPECT_EQ(ask(kOtherWindow), 64);
  EXPECT_EQ(ask(kQuest), 192);
  EXPECT_EQ(ask(kH2o), 32) << "heavy hitters are looked for behind them";
  EXPECT_EQ(ask(kSnapKv), 176) << "the window votes";
  EXPECT_EQ(ask(kSnapKv), 176);
  EXPECT_EQ(ask({}), 192);
}

// Where h2o and snapkv come first, and what they leave behind.
TEST(KvPolicies, WhatMovesItsTokensSharesThoseBefore) {
  for (const bool has_room : {true, false}) {
    for (const KvPolicy& policy : {kH2o, kSnapKv}) {
      const EngineConfig config{.max_context = 400, .max_seqs = 3, .max_batch_tokens = 64};
      CoreHarness harness({0}, config, has_room ? 200 : 15);
      const auto prompt = random_prompt(3, 200);
      const int exact = policy.num_exact_tokens(200) / kBlockSize * kBlockSize;
      const auto ask = [&](const KvPolicy& wanted, int n = 1) {
        const RequestId first = harness.add(with(make_request(prompt, 20), wanted), n);
        harness.run_all();
        for (RequestId id = first; id < first + static_cast<unsigned>(n); ++id)
          EXPECT_EQ(harness.tokens(id), expected_output({0}, prompt, 20, wanted));
        return harness.last(first).stats.num_cached_tokens;
      };
      EXPECT_EQ(ask(policy), 0);
      const int again = ask(policy, 3);
      if (has_room) {
        EXPECT_EQ(again, exact);
        EXPECT_EQ(ask({}), exact);
        EXPECT_EQ(ask({}), 192);
      } else {
        EXPECT_LE(again, exact);
        EXPECT_LE(ask({}), exact);
      }
      EXPECT_EQ(ask(policy, 2), exact);
    }
  }
}

// What is scored behind a prompt is read as an answer is.
TEST(KvPolicies, APromptMayEndWhereItSays) {
  for (const KvPolicy& policy : kPolicies) {
    const auto prompt = random_prompt(5, 120);
    const std::vector<TokenId> answer = expected_output({0}, prompt, 60, policy);
    CoreHarness harness({0}, {.max_context = 400, .max_seqs = 2, .max_batch_tokens = 50}, 100);
    EngineRequest request = with(make_request(prompt, 20), policy);
    request.prompt.insert(request.prompt.end(), answer.begin(), answer.begin() + 40);
    request.num_policy_prompt_tokens = 120;
    const RequestId id = harness.add(std::move(request));
    harness.run_all();
    EXPECT_EQ(harness.tokens(id), std::vector<TokenId>(answer.begin() + 40, answer.end()))
        << to_string(policy);
  }
}

TEST(KvPolicies, BudgetsBoundTheBlocks) {
  const auto most_held = [](const KvPolicy& policy, int num_prompt, int num_output) {
    CoreHarness harness({0, 0}, {.max_context = 1000, .max_seqs = 2, .max_batch_tokens = 100}, 70);
    harness.add(with(make_request(random_prompt(1, num_prompt), num_output), policy));
    std::int64_t most = 0, most_behind_prompt = 0;
    while (harness.core().has_work()) {
      harness.step();
      const auto held =
          harness.core().stats().kv_policies[static_cast<std::size_t>(policy.type)].num_held_blocks;
      most = std::max(most, held);
      if (!harness.outputs(1).empty()) most_behind_prompt = std::max(most_behind_prompt, held);
    }
    EXPECT_EQ(harness.tokens(1).size(), static_cast<std::size_t>(num_output));
    EXPECT_EQ(harness.core().stats().num_free_blocks, 70);
    return std::pair(most, most_behind_prompt);
  };
  EXPECT_EQ(most_held(kH2o, 700, 200), std::pair(std::int64_t{4}, std::int64_t{4}));
  EXPECT_EQ(most_held(kH2o, 1, 900), std::pair(std::int64_t{4}, std::int64_t{4}));
  EXPECT_EQ(most_held(KvPolicy{.type = KvPolicyType::kH2o, .budget = 512}, 900, 50).first, 33);
  EXPECT_EQ(most_held(kSnapKv, 700, 1).second, 0) << "it ends with its first token";
  EXPECT_EQ(most_held(kSnapKv, 700, 5), std::pair(std::int64_t{43}, std::int64_t{4}));
}

TEST(KvPolicies, AWindowGoesOnBehindTheContextInConstantMemory) {
  CoreHarness harness({0, 0}, {.max_context = 64, .max_seqs = 2, .max_batch_tokens = 16}, 16);
  const RequestId id = harness.add(with(make_request(random_prompt(1, 30), 3000), kWindow));
  std::int64_t most = 0;
  while (harness.core().has_work()) {
    harness.step();
    const auto& use = harness.core().stats().kv_policies[1];
    most = std::max(most, use.num_held_blocks);
  }
  EXPECT_EQ(harness.tokens(id).size(), 3000u);
  EXPECT_EQ(harness.last(id).finish, FinishReason::kLength);
  EXPECT_LE(most, 36 / 16 + 1) << "blocks of one group of two layers";
}

TEST(KvPolicies, CancelGivesAllBack) {
  CoreHarness harness({0}, {.max_context = 400, .max_seqs = 6, .max_batch_tokens = 60}, 60);
  std::vector<RequestId> ids;
  for (unsigned i = 0; i < kNumPolicies; ++i)
    ids.push_back(harness.add(with(make_request(random_prompt(i, 100), 100), kPolicies[i])));
  for (int i = 0; i < 30; ++i) harness.step();
  EXPECT_EQ(harness.core().stats().kv_policies[1].num_running, 2);
  for (const KvPolicyUse& use : harness.core().stats().kv_policies)
    EXPECT_GT(use.num_held_blocks, 0);
  for (const RequestId id : ids) harness.abort(id);
  EXPECT_EQ(harness.core().stats().num_free_blocks, 60);
  for (const KvPolicyUse& use : harness.core().stats().kv_policies)
    EXPECT_EQ(use.num_held_blocks, 0);
}

TEST(KvPolicies, ChoicesShareAPromptUnderEach) {
  for (const KvPolicy& policy : kPolicies) {
    CoreHarness harness({0}, {.max_context = 400, .max_seqs = 4, .max_batch_tokens = 64}, 100);
    const auto prompt = random_prompt(9, 150);
    const RequestId first = harness.add(with(make_request(prompt, 60), policy), 3);
    harness.run_all();
    for (RequestId id = first; id < first + 3; ++id)
      EXPECT_EQ(harness.tokens(id), expected_output({0}, prompt, 60, policy));
  }
}

TEST(KvPolicies, TheEngineChecksThemAndHasADefault) {
  EngineConfig config{.max_context = 128, .max_seqs = 2, .max_batch_tokens = 16};
  config.kv_bytes = 10 * testing::FakeModel({0}).kv_layout().block_bytes();
  config.kv_policy = kWindow;
  auto engine = Engine::create(std::make_unique<testing::FakeModel>(std::vector<int>{0}), config);
  ASSERT_TRUE(engine) << engine.error().message();
  const auto prompt = random_prompt(2, 40);
  auto stream = (*engine)->submit(make_request(prompt, 200));  // more than the context
  ASSERT_TRUE(stream) << stream.error().message();
  std::vector<TokenId> tokens;
  while (auto output = (*stream)->wait(std::chrono::minutes(1))) {
    if (output->token) tokens.push_back(*output->token);
    if (output->finish != FinishReason::kNone) break;
  }
  EXPECT_EQ(tokens, expected_output({0}, prompt, 200, kWindow));

  const std::pair<EngineRequest, const char*> refused[] = {
      {with(make_request(prompt, 200), {}), "the context holds 128"},
      {with(make_request(prompt, 10), {KvPolicyType::kWindow, 4, 40}), "kv_policy: window"},
      {with(make_request(prompt, 300), {KvPolicyType::kWindow, 4, 256}), "18 blocks"},
      {with(make_request(prompt, kMaxOpenContext), kWindow), "the context holds 1048576"},
  };
  for (const auto& [request, part] : refused) {
    const auto none = (*engine)->submit(request);
    ASSERT_FALSE(none) << part;
    EXPECT_NE(none.error().message().find(part), std::string::npos) << none.error().message();
  }
}

struct ModelCase {
  const char* name;
  ModelConfig (*config)();
};

// Real attention with random weights: company, chunks and preemption change no bit.
class KvPolicyModels : public ::testing::TestWithParam<ModelCase> {
 protected:
  static constexpr unsigned kRequests = 9;

  static std::unique_ptr<Model> load(Isa isa, int num_layers = 0) {
    testing::RandomWeightsOptions options;
    options.seed = 7;
    options.matrix_types = {DType::kQ8_0, DType::kF16};
    ModelConfig config = GetParam().config();
    if (num_layers > 0) config.layers.resize(static_cast<std::size_t>(num_layers));
    options.interleaved_qk = config.architecture == "llama";
    const testing::RandomWeights source(config, options);
    LoadOptions load_options;
    load_options.isa = isa;
    load_options.num_threads = 2;
    if (num_layers > 0) load_options.kv_formats = KvFormat::kF32;
    auto model = load_model(source, config, load_options);
    DUNLIN_CHECK(model.has_value(), "the tiny model loads");
    return std::move(*model);
  }
  static EngineRequest request(unsigned i, int vocab_size) {
    // Of one token, too.
    const int length = i == 5 ? 1 : 20 + static_cast<int>(i * 13 % 60);
    EngineRequest request = make_request(random_prompt(i, length, vocab_size), 60);
    request.sampling.temperature = 1;
    request.sampling.seed = i;
    request.sampling.num_logprobs = 1;
    return with(std::move(request), kPolicies[(i + 1) % kNumPolicies]);
  }
  static std::vector<float> logprobs(CoreHarness& harness, RequestId id) {
    std::vector<float> all;
    for (const TokenOutput& output : harness.outputs(id))
      if (output.logprobs) all.push_back(output.logprobs->logprob);
    return all;
  }
};

TEST_P(KvPolicyModels, CompanyChunksAndPreemptionChangeNothing) {
  for (const Isa isa : {Isa::kReference, best_isa()}) {
    EngineConfig alone_config{.max_context = 200, .max_seqs = 1, .max_batch_tokens = 200};
    alone_config.prefix_cache = false;
    CoreHarness alone(alone_config, 400, load(isa));
    std::vector<std::vector<float>> expected;
    for (unsigned i = 0; i < kRequests; ++i) {
      const RequestId id = alone.add(request(i, alone.vocab_size()));
      alone.run_all();
      expected.push_back(logprobs(alone, id));
      EXPECT_EQ(expected.back().size(), 60u);
    }
    const EngineConfig crowded_config{.max_context = 200, .max_seqs = 6, .max_batch_tokens = 24};
    // Those of the longest, and a few.
    const int one = KvCacheManager::max_blocks_per_sequence(alone.layout(), 140, 24);
    const int groups = static_cast<int>(alone.layout().groups.size());
    CoreHarness crowded(crowded_config, one + 2 * groups, load(isa));
    std::vector<RequestId> ids;
    for (unsigned i = 0; i < kRequests; ++i) {
      ids.push_back(crowded.add(request(i, crowded.vocab_size())));
      crowded.step();
    }
    crowded.run_all();
    for (unsigned i = 0; i < kRequests; ++i)
      EXPECT_EQ(logprobs(crowded, ids[i]), expected[i]) << "request " << i;
    EXPECT_GT(crowded.core().stats().num_preemptions, 0u);
  }
}

// A window as long as the text hides nothing, and a shorter one something.
TEST_P(KvPolicyModels, WindowsMatterWhereTheyHideTokens) {
  CoreHarness harness({.max_context = 200, .max_seqs = 1, .max_batch_tokens = 200}, 400,
                      load(best_isa()));
  std::vector<std::vector<float>> seen;
  for (const KvPolicy& policy : {KvPolicy{}, KvPolicy{KvPolicyType::kWindow, 0, 128}, kWindow}) {
    const RequestId id = harness.add(with(request(1, harness.vocab_size()), policy));
    harness.run_all();
    seen.push_back(logprobs(harness, id));
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_NE(seen[0], seen[2]);
}

// As long as all tokens are kept it is full attention, and then it isn't any more.
TEST_P(KvPolicyModels, BudgetsMatterWhereTheyDropTokens) {
  CoreHarness harness({.max_context = 200, .max_seqs = 1, .max_batch_tokens = 200}, 400,
                      load(best_isa()));
  std::vector<std::vector<float>> seen;
  for (const KvPolicy& policy :
       {KvPolicy{}, KvPolicy{.type = KvPolicyType::kH2o, .budget = 160},
        KvPolicy{.type = KvPolicyType::kSnapKv, .budget = 96}, kH2o, kSnapKv}) {
    const RequestId id = harness.add(with(request(4, harness.vocab_size()), policy));
    harness.run_all();
    seen.push_back(logprobs(harness, id));
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
  EXPECT_NE(seen[0], seen[3]);
  EXPECT_NE(seen[0], seen[4]);
}

// In a model of one layer keys and values know nothing of other tokens, so a text with a gap is the
// text without what lies in it: positions count what is kept.
TEST_P(KvPolicyModels, PositionsAreThoseInsideTheCache) {
  for (const Isa isa : {Isa::kReference, best_isa()}) {
    const EngineConfig config{.max_context = 200, .max_seqs = 1, .max_batch_tokens = 50};
    CoreHarness harness(config, 400, load(isa, 1));
    if (!harness.has_open_positions()) GTEST_SKIP() << "its positions are learned";
    if (harness.layout().groups[0].window > 0) GTEST_SKIP() << "the layer has its own window";
    const auto text = random_prompt(11, 150, harness.vocab_size());
    const auto last = [&](const std::vector<TokenId>& prompt, const KvPolicy& policy) {
      EngineRequest request = with(make_request(prompt, 1), policy);
      request.sampling.num_logprobs = 8;
      const RequestId id = harness.add(request);
      harness.run_all();
      std::vector<float> all;
      for (const auto& [token, logprob] : harness.last(id).logprobs->top) all.push_back(logprob);
      return all;
    };
    std::vector<TokenId> kept(text.begin(), text.begin() + kWindow.sinks);
    kept.insert(kept.end(), text.begin() + kWindow.first_kept(149), text.end());
    const std::vector<float> want = last(kept, {}), got = last(text, kWindow);
    ASSERT_EQ(want.size(), 8u);
    for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(got[i], want[i], 2e-4) << i;
    EXPECT_GT(std::abs(last(text, {})[0] - want[0]), 2e-3) << "the gap matters";
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, KvPolicyModels,
                         ::testing::Values(ModelCase{"llama", testing::tiny_llama},
                                           ModelCase{"gemma3", testing::tiny_gemma3},
                                           ModelCase{"gpt2", testing::tiny_gpt2},
                                           ModelCase{"deepseek", testing::tiny_deepseek}),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace dunlin
