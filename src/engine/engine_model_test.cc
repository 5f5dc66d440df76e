// The engine on tiny models with random weights and real attention: company, chunks, preemption
// and cache hits change no token, bit for bit.
#include <gtest/gtest.h>

#include "model/loader.h"
#include "support/engine_harness.h"
#include "support/random_weights.h"

namespace dunlin {
namespace {

using testing::CoreHarness;
using testing::make_request;
using testing::random_prompt;

std::unique_ptr<Model> load(const ModelConfig& config, Isa isa, KvFormats kv_formats = {}) {
  testing::RandomWeightsOptions options;
  options.seed = 7;
  options.matrix_types = {DType::kQ8_0, DType::kF16};
  options.interleaved_qk = config.architecture == "llama";
  const testing::RandomWeights source(config, options);
  LoadOptions load_options;
  load_options.isa = isa;
  load_options.num_threads = 2;
  load_options.kv_formats = kv_formats;
  auto model = dunlin::load_model(source, config, load_options);
  DUNLIN_CHECK(model.has_value(), "the tiny model loads");
  return std::move(*model);
}

// Drawn with a seed and with log-probabilities, so that one different bit shows.
EngineRequest request_of(unsigned seed, int vocab_size) {
  EngineRequest request =
      make_request(random_prompt(seed, 20 + static_cast<int>(seed * 13 % 60), vocab_size), 40);
  request.sampling.temperature = 1;
  request.sampling.seed = seed;
  request.sampling.num_logprobs = 1;
  return request;
}

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  bool operator==(const Answer&) const = default;
};

Answer answer_of(CoreHarness& harness, RequestId id) {
  Answer answer{harness.tokens(id), {}};
  for (const TokenOutput& output : harness.outputs(id)) {
    if (output.logprobs) answer.logprobs.push_back(output.logprobs->logprob);
  }
  return answer;
}

struct Case {
  std::string architecture;
  KvFormats kv_formats{};

  std::string name() const {
    if (kv_formats == KvFormats()) return architecture;
    return architecture + "_" + std::string(kv_format_info(kv_formats.k).name) + "_" +
           std::string(kv_format_info(kv_formats.v).name);
  }
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name(); }

std::vector<Case> cases() {
  std::vector<Case> all = {{"llama"}, {"qwen2"}, {"gemma3"}};
  for (int i = 0; i < kNumKvFormats; ++i) {
    const auto format = static_cast<KvFormat>(i);
    if (format != KvFormat::kF16) all.push_back({"qwen2", format});
  }
  all.push_back({"gemma3", KvFormat::kInt8});
  all.push_back({"llama", {KvFormat::kInt8, KvFormat::kInt4}});
  return all;
}

class EngineModelTest : public ::testing::TestWithParam<Case> {
 protected:
  // The reference for what the cache holds by default, the machine's own kernels for the rest.
  static std::unique_ptr<Model> load_model() {
    const bool is_usual = GetParam().kv_formats == KvFormats();
    return load(config(), is_usual ? Isa::kReference : best_isa(), GetParam().kv_formats);
  }
  static ModelConfig config() {
    const std::string& name = GetParam().architecture;
    if (name == "llama") return testing::tiny_llama();
    return name == "qwen2" ? testing::tiny_qwen2() : testing::tiny_gemma3();
  }
};

TEST_P(EngineModelTest, CompanyChunksAndPreemptionChangeNothing) {
  constexpr unsigned kRequests = 6;
  EngineConfig alone_config{.max_context = 128, .max_seqs = 1, .max_batch_tokens = 128};
  alone_config.prefix_cache = false;
  CoreHarness alone(alone_config, 400, load_model());
  const int vocab_size = alone.vocab_size();
  std::vector<Answer> expected;
  for (unsigned i = 0; i < kRequests; ++i) {
    const RequestId id = alone.add(request_of(i, vocab_size));
    alone.run_all();
    expected.push_back(answer_of(alone, id));
    EXPECT_EQ(expected.back().tokens.size(), 40u);
  }

  const EngineConfig crowded_config{.max_context = 128, .max_seqs = 6, .max_batch_tokens = 24};
  const int groups = static_cast<int>(alone.layout().groups.size());
  CoreHarness crowded(crowded_config, 15 * groups, load_model());
  std::vector<RequestId> ids;
  for (unsigned i = 0; i < kRequests; ++i) {
    ids.push_back(crowded.add(request_of(i, vocab_size)));
    crowded.step();
  }
  crowded.run_all();
  for (unsigned i = 0; i < kRequests; ++i) {
    EXPECT_EQ(answer_of(crowded, ids[i]), expected[i]) << "request " << i;
  }
  EXPECT_GT(crowded.core().stats().num_preemptions, 0u);
}

TEST_P(EngineModelTest, APrefixHitChangesNothing) {
  const EngineConfig engine_config{.max_context = 160, .max_seqs = 4, .max_batch_tokens = 64};
  CoreHarness harness(engine_config, 400, load_model());
  EngineRequest request = request_of(5, harness.vocab_size());
  const RequestId first = harness.add(request);
  harness.run_all();
  const RequestId second = harness.add(request);
  harness.run_all();
  EXPECT_EQ(harness.last(first).stats.num_cached_tokens, 0);
  EXPECT_GE(harness.last(second).stats.num_cached_tokens, 16);
  EXPECT_EQ(answer_of(harness, first), answer_of(harness, second));
}

EngineRequest embedding_of(unsigned seed, Pooling pooling, int vocab_size) {
  EngineRequest request;
  request.prompt = random_prompt(seed, 5 + static_cast<int>(seed * 29 % 100), vocab_size);
  request.pooling = pooling;
  return request;
}

Pooling pooling_of(unsigned i) {
  constexpr Pooling kAll[] = {Pooling::kMean, Pooling::kLast, Pooling::kCls};
  return kAll[i % 3];
}

// Embeddings of six texts, one at a time.
std::vector<std::vector<float>> embeddings_alone(const ModelConfig& config) {
  EngineConfig alone_config{.max_context = 128, .max_seqs = 1, .max_batch_tokens = 128};
  alone_config.prefix_cache = false;
  CoreHarness alone(alone_config, 400, load(config, best_isa()));
  std::vector<std::vector<float>> expected;
  for (unsigned i = 0; i < 6; ++i) {
    const RequestId id = alone.add(embedding_of(i, pooling_of(i), alone.vocab_size()));
    alone.run_all();
    EXPECT_EQ(alone.outputs(id).size(), 1u);
    EXPECT_EQ(alone.last(id).finish, FinishReason::kStop);
    expected.push_back(alone.last(id).embedding);
    EXPECT_EQ(expected.back().size(), static_cast<std::size_t>(config.hidden_size));
  }
  return expected;
}

TEST_P(EngineModelTest, EmbeddingsAmongGenerationsEqualThoseAlone) {
  const std::vector<std::vector<float>> expected = embeddings_alone(config());
  const EngineConfig crowded_config{.max_context = 128, .max_seqs = 6, .max_batch_tokens = 24};
  const int groups = static_cast<int>(kv_layout(config(), KvFormat::kF16).groups.size());
  CoreHarness crowded(crowded_config, 13 * groups, load(config(), best_isa()));
  std::vector<RequestId> generations, embeddings;
  for (unsigned i = 0; i < 6; ++i) {
    generations.push_back(crowded.add(request_of(i, crowded.vocab_size())));
    embeddings.push_back(crowded.add(embedding_of(i, pooling_of(i), crowded.vocab_size())));
    crowded.step();
  }
  crowded.run_all();
  EXPECT_GT(crowded.core().stats().num_preemptions, 0u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(crowded.last(embeddings[i]).embedding, expected[i]) << i;
    EXPECT_EQ(crowded.tokens(generations[i]).size(), 40u);
  }
}

// The last token's state may come from a hit, a mean must see every token.
TEST_P(EngineModelTest, APrefixHitServesTheLastTokensEmbedding) {
  const EngineConfig engine_config{.max_context = 160, .max_seqs = 4, .max_batch_tokens = 64};
  CoreHarness harness(engine_config, 400, load(config(), best_isa()));
  for (const Pooling pooling : {Pooling::kMean, Pooling::kLast, Pooling::kCls}) {
    std::vector<std::vector<float>> seen;
    int num_cached = 0;
    for (int i = 0; i < 2; ++i) {
      const RequestId id = harness.add(embedding_of(3, pooling, harness.vocab_size()));
      harness.run_all();
      seen.push_back(harness.last(id).embedding);
      num_cached = harness.last(id).stats.num_cached_tokens;
    }
    EXPECT_EQ(seen[0], seen[1]);
    EXPECT_EQ(num_cached > 0, pooling == Pooling::kLast);
  }
}

TEST(EngineEncoder, TextsRunWholeAndEqualThoseAlone) {
  const std::vector<std::vector<float>> expected = embeddings_alone(testing::tiny_bert());
  const EngineConfig crowded_config{.max_context = 128, .max_seqs = 6, .max_batch_tokens = 128};
  CoreHarness crowded(crowded_config, 14, load(testing::tiny_bert(), best_isa()));
  std::vector<RequestId> ids;
  for (unsigned i = 0; i < 6; ++i)
    ids.push_back(crowded.add(embedding_of(i, pooling_of(i), crowded.vocab_size())));
  crowded.run_all();
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(crowded.last(ids[i]).embedding, expected[i]) << i;
  EXPECT_EQ(crowded.core().stats().num_preemptions, 0u);
  EXPECT_LT(crowded.core().stats().num_steps, 6u);
  EXPECT_EQ(crowded.core().stats().num_cached_blocks, 0);
}

TEST(EngineEncoder, RefusesTextAndWhatNoStepHolds) {
  EngineConfig config{.max_seqs = 2, .max_batch_tokens = 64};
  auto engine = Engine::create(load(testing::tiny_bert(), best_isa()), config);
  ASSERT_TRUE(engine) << engine.error().message();
  EXPECT_EQ((*engine)->config().max_context, 64);
  EXPECT_TRUE((*engine)->limits().is_encoder);
  const auto text = (*engine)->submit(make_request({1, 2, 3}, 4));
  ASSERT_FALSE(text);
  EXPECT_NE(text.error().message().find("encoder"), std::string::npos);
  EngineRequest request;
  request.pooling = Pooling::kMean;
  request.prompt = random_prompt(1, 65, 331);
  const auto too_long = (*engine)->submit(request);
  ASSERT_FALSE(too_long);
  EXPECT_NE(too_long.error().message().find("65 tokens"), std::string::npos);
  request.prompt.pop_back();
  const auto fits = (*engine)->submit(request);
  ASSERT_TRUE(fits);
  const auto output = (*fits)->wait(std::chrono::seconds(20));
  ASSERT_TRUE(output);
  EXPECT_EQ(output->embedding.size(), 96u);
}

INSTANTIATE_TEST_SUITE_P(Architectures, EngineModelTest, ::testing::ValuesIn(cases()),
                         [](const auto& param) { return param.param.name(); });

}  // namespace
}  // namespace dunlin
