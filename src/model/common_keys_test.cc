#include "model/common_keys.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "model/loader.h"
#include "model/rope_setup.h"
#include "model/single_sequence.h"
#include "support/random_weights.h"

namespace dunlin {
namespace {

// Heads of four channels: pair 0 is fast, pair 1 turns by half a radian over the context.
struct Fixture {
  ModelConfig config = testing::tiny_qwen2();
  LayerWeights layer;
  RopeFrequencies rope{{0.5, 0.005}, 2.0};

  Fixture() {
    config.context_length = 100;
    config.head_dim = 4;
    layer.k.bias = {1, 2, 3, 4, 5, 6, 7, 8};
  }
};
using Floats = std::vector<float>;

TEST(CommonKeys, AreTheBiasInSlowPairs) {
  const Fixture f;
  EXPECT_EQ(common_keys(f.config, f.layer, &f.rope, RopeStyle::kRotateHalf),
            (Floats{0, 4, 0, 8, 0, 12, 0, 16}));
  EXPECT_EQ(common_keys(f.config, f.layer, &f.rope, RopeStyle::kInterleaved),
            (Floats{0, 0, 6, 8, 0, 0, 14, 16}));
}

TEST(CommonKeys, AreAllOfTheBiasWithoutPositions) {
  const Fixture f;
  EXPECT_EQ(common_keys(f.config, f.layer, nullptr, RopeStyle::kRotateHalf), f.layer.k.bias);
}

TEST(CommonKeys, AreNoneWhereASoftmaxIsNotAll) {
  Fixture f;
  const auto none = [&] {
    return common_keys(f.config, f.layer, &f.rope, RopeStyle::kRotateHalf).empty();
  };
  f.config.attention_softcap = 20;
  EXPECT_TRUE(none());
  f.config.attention_softcap = 0;
  f.config.attention_sinks = true;
  EXPECT_TRUE(none());
  f.config.attention_sinks = false;
  EXPECT_FALSE(none());
  f.layer.k_norm.weight = {1};
  EXPECT_TRUE(none());
  f.layer.k_norm.weight.clear();
  f.layer.k.bias.clear();
  EXPECT_TRUE(none());
}

// Biases of 60 in slow pairs leave int8 as exact as without: the logits stay near those of f32.
TEST(CommonKeys, LargeBiasesCostNoPrecision) {
  const ModelConfig config = testing::tiny_qwen2();
  testing::RandomWeights source(config, {});
  const RopeFrequencies rope = make_frequencies(config.ropes[0], {});
  const std::size_t pairs = rope.inv_freq.size();
  ASSERT_LE(rope.inv_freq.back() * config.context_length, 1) << "the model has a slow pair";
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    auto& bytes = source.bytes("blk." + std::to_string(i) + ".attn_k.bias");
    auto* bias = reinterpret_cast<float*>(bytes.data());
    bias[pairs - 1] = 60;
    bias[2 * pairs - 1] = -45;
  }
  const auto logits = [&](KvFormat format) {
    LoadOptions options;
    options.isa = Isa::kReference;
    options.kv_formats = format;
    auto model = load_model(source, config, options);
    EXPECT_TRUE(model) << model.error().message();
    SingleSequence sequence(**model, 64);
    std::vector<TokenId> ids;
    for (int i = 0; i < 40; ++i) ids.push_back(i * i % 300);
    const auto row = sequence.append(ids);
    return Floats(row.begin(), row.end());
  };
  const Floats want = logits(KvFormat::kF32), got = logits(KvFormat::kInt8);
  float greatest = 0, span = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    greatest = std::max(greatest, std::abs(want[i] - got[i]));
    span = std::max(span, std::abs(want[i]));
  }
  EXPECT_GT(greatest, 0);
  EXPECT_LT(greatest, 0.02f * span);
}

}  // namespace
}  // namespace dunlin
