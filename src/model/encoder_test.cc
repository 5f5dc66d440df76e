// Hidden states: a text's do not depend on the batch around it, bit for bit, of encoders and of
// models that generate.
#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "cpu/isa.h"
#include "model/loader.h"
#include "model/sequence_set.h"
#include "support/random_weights.h"

namespace dunlin {
namespace {

using Vector = std::vector<float>;

constexpr int kLongest = 270;  // more than a split of attention

std::unique_ptr<Model> load(const ModelConfig& config, Isa isa, int num_threads = 2) {
  testing::RandomWeightsOptions options;
  options.seed = 5;
  options.matrix_types = {DType::kF32, DType::kQ8_0, DType::kF16};
  const testing::RandomWeights source(config, options);
  LoadOptions load_options;
  load_options.isa = isa;
  load_options.num_threads = num_threads;
  auto model = load_model(source, config, load_options);
  EXPECT_TRUE(model) << model.error().message();
  return std::move(*model);
}

std::vector<TokenId> text(int seed, int length) {
  std::vector<TokenId> ids;
  for (int i = 0; i < length; ++i) ids.push_back((i * i * 5 + seed * 71 + i) % 331);
  return ids;
}

// The hidden states of all tokens of each text, computed as one batch.
std::vector<Vector> hidden_of(Model& model, const std::vector<std::vector<TokenId>>& texts) {
  SequenceSet set(model, static_cast<int>(texts.size()), kLongest, 3 * kLongest, 1);
  std::vector<std::int32_t> all(kLongest);
  std::iota(all.begin(), all.end(), 0);
  std::vector<SequenceSet::Part> parts;
  for (std::size_t i = 0; i < texts.size(); ++i)
    parts.push_back({static_cast<int>(i), texts[i], {}, std::span(all).first(texts[i].size())});
  set.step(parts);
  std::vector<Vector> rows;
  const float* at = set.hidden().data();
  for (const std::vector<TokenId>& ids : texts) {
    const auto size = static_cast<std::ptrdiff_t>(ids.size()) * model.limits().hidden_size;
    rows.emplace_back(at, at + size);
    at += size;
  }
  return rows;
}

class EncoderTest : public ::testing::TestWithParam<Isa> {};

TEST_P(EncoderTest, a_text_in_a_batch_equals_the_text_alone) {
  const auto model = load(testing::tiny_bert(), GetParam());
  const std::vector<std::vector<TokenId>> texts = {text(1, kLongest), text(2, 3), text(3, 40)};
  const std::vector<Vector> together = hidden_of(*model, texts);
  for (std::size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(hidden_of(*model, {texts[i]}).front(), together[i]) << i;
  EXPECT_EQ(hidden_of(*load(testing::tiny_bert(), GetParam(), 1), {texts[0]}).front(), together[0]);
}

TEST_P(EncoderTest, every_token_sees_all_of_its_text) {
  const auto model = load(testing::tiny_bert(), GetParam());
  std::vector<TokenId> ids = text(4, kLongest);
  const Vector before = hidden_of(*model, {ids}).front();
  ids.back() = (ids.back() + 1) % 331;
  const Vector after = hidden_of(*model, {ids}).front();
  const int size = model->limits().hidden_size;
  for (int token = 0; token < kLongest; token += 31)
    EXPECT_FALSE(std::equal(before.begin() + token * size, before.begin() + (token + 1) * size,
                            after.begin() + token * size))
        << token;
}

// A row that gives logits and one that gives a hidden state, the same or not.
TEST_P(EncoderTest, logits_and_hidden_states_may_be_wanted_of_one_step) {
  for (const ModelConfig& config :
       {testing::tiny_llama(), testing::tiny_gemma3(), testing::tiny_falcon(),
        testing::tiny_deepseek(), testing::tiny_qwen2moe()}) {
    const auto model = load(config, GetParam());
    const std::vector<TokenId> a = text(5, 40), b = text(6, 9);
    const Vector hidden_a = hidden_of(*model, {a}).front(),
                 hidden_b = hidden_of(*model, {b}).front();
    SequenceSet set(*model, 2, 64, 64, 4);
    const std::int32_t last_a = 39, last_b = 8;
    const std::int32_t some_b[] = {2, 8};
    const SequenceSet::Part alone{0, a, {&last_a, 1}};
    const auto logits = set.step({&alone, 1});
    const Vector want(logits.begin(), logits.end());
    set.truncate(0, 0);
    const SequenceSet::Part both[] = {{1, b, {}, some_b}, {0, a, {&last_a, 1}, {&last_a, 1}}};
    const auto mixed = set.step(both);
    EXPECT_EQ(Vector(mixed.begin(), mixed.end()), want) << config.architecture;
    const std::ptrdiff_t n = model->limits().hidden_size;
    const auto equal = [&](const Vector& from, std::ptrdiff_t row, std::ptrdiff_t at) {
      return std::equal(from.begin() + row * n, from.begin() + (row + 1) * n,
                        set.hidden().begin() + at * n);
    };
    EXPECT_TRUE(equal(hidden_b, 2, 0)) << config.architecture;
    EXPECT_TRUE(equal(hidden_b, last_b, 1)) << config.architecture;
    EXPECT_TRUE(equal(hidden_a, last_a, 2)) << config.architecture;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EncoderTest, ::testing::ValuesIn(supported_isas()),
                         [](const auto& param_info) {
                           std::string name(isa_name(param_info.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// The scale of logits is no part of hidden states.
TEST(HiddenStates, DoNotKnowTheScaleOfLogits) {
  ModelConfig config = testing::tiny_llama();
  const Vector want = hidden_of(*load(config, Isa::kReference), {text(7, 12)}).front();
  config.logit_scale = 0.25f;
  EXPECT_EQ(hidden_of(*load(config, Isa::kReference), {text(7, 12)}).front(), want);
}

}  // namespace
}  // namespace dunlin
