#include "model/config.h"

#include <cmath>
#include <functional>
#include <limits>

#include <gmock/gmock.h>

#include "model/registry.h"
#include "model/weights.h"
#include "support/random_weights.h"

namespace dunlin {
namespace {

using ::testing::HasSubstr;

TEST(Config, the_tiny_models_are_valid_and_have_all_their_tensors) {
  for (const ModelConfig& config :
       {testing::tiny_llama(), testing::tiny_qwen2(), testing::tiny_gemma3(),
        testing::tiny_deepseek(), testing::tiny_qwen2moe(), testing::tiny_gpt_oss()}) {
    EXPECT_TRUE(validate(config)) << validate(config).error().message();
    const testing::RandomWeights weights(config, {});
    EXPECT_TRUE(check_tensors(config, weights));
    EXPECT_NE(find_architecture(config.architecture), nullptr);
  }
}

TEST(Config, each_impossible_number_is_refused_by_its_key) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  struct Case {
    const char* key;
    std::function<void(ModelConfig&)> spoil;
  };
  const Case cases[] = {
      {"embedding_length", [](ModelConfig& c) { c.hidden_size = 0; }},
      {"embedding_length", [](ModelConfig& c) { c.hidden_size = 1 << 30; }},
      {"attention.head_count", [](ModelConfig& c) { c.num_heads = 0; }},
      {"attention.head_count_kv", [](ModelConfig& c) { c.num_kv_heads = 0; }},
      {"does not divide", [](ModelConfig& c) { c.num_kv_heads = 4; }},
      {"does not divide", [](ModelConfig& c) { c.num_kv_heads = 12; }},
      {"attention.key_length", [](ModelConfig& c) { c.head_dim = -16; }},
      {"feed_forward_length", [](ModelConfig& c) { c.ffn_size = 0; }},
      {"vocab_size", [](ModelConfig& c) { c.vocab_size = 0; }},
      {"context_length", [](ModelConfig& c) { c.context_length = 0; }},
      {"block_count", [](ModelConfig& c) { c.layers.clear(); }},
      {"layer_norm_rms_epsilon", [](ModelConfig& c) { c.norm_eps = 0; }},
      {"layer_norm_rms_epsilon", [&](ModelConfig& c) { c.norm_eps = nan; }},
      {"rope.dimension_count", [](ModelConfig& c) { c.ropes[0].dims = 11; }},
      {"rope.dimension_count", [](ModelConfig& c) { c.ropes[0].dims = 18; }},
      {"rope.dimension_count", [](ModelConfig& c) { c.ropes[0].dims = 0; }},
      {"rope.freq_base", [](ModelConfig& c) { c.ropes[0].theta = 0; }},
      {"rope.freq_base", [&](ModelConfig& c) { c.ropes[0].theta = nan; }},
      {"rope.scaling.factor", [](ModelConfig& c) { c.ropes[0].position_divisor = 0; }},
      {"sliding_window", [](ModelConfig& c) { c.layers[1].window = -1; }},
      {"RoPE", [](ModelConfig& c) { c.layers[1].rope_idx = 1; }},
      {"scale", [&](ModelConfig& c) { c.attention_scale = nan; }},
      {"soft caps", [](ModelConfig& c) { c.logit_softcap = -1; }},
  };
  for (const Case& bad : cases) {
    ModelConfig config = testing::tiny_llama();
    bad.spoil(config);
    const Outcome outcome = validate(config);
    ASSERT_FALSE(outcome) << bad.key;
    EXPECT_THAT(outcome.error().message(), HasSubstr(bad.key));
  }
}

TEST(Config, each_impossible_number_of_experts_is_refused_by_its_key) {
  struct Case {
    const char* key;
    std::function<void(MoeConfig&)> spoil;
  };
  const Case cases[] = {
      {"expert_count", [](MoeConfig& m) { m.num_experts = kMaxExperts + 1; }},
      {"expert_used_count", [](MoeConfig& m) { m.experts_per_token = 0; }},
      {"expert_used_count", [](MoeConfig& m) { m.experts_per_token = 10; }},
      {"expert_feed_forward_length", [](MoeConfig& m) { m.ffn_size = 0; }},
      {"expert_group_count", [](MoeConfig& m) { m.num_groups = 2; }},
      {"expert_group_used_count", [](MoeConfig& m) { m.groups_per_token = 4; }},
      {"expert_group_used_count", [](MoeConfig& m) { m.groups_per_token = 1; }},
      {"expert_weights_scale", [](MoeConfig& m) { m.scale = 0; }},
      {"expert_shared_feed_forward_length", [](MoeConfig& m) { m.shared_ffn_size = -1; }},
  };
  for (const Case& bad : cases) {
    ModelConfig config = testing::tiny_qwen2moe();
    bad.spoil(config.moe);
    const Outcome outcome = validate(config);
    ASSERT_FALSE(outcome) << bad.key;
    EXPECT_THAT(outcome.error().message(), HasSubstr(bad.key));
  }
}

TEST(Config, window_layers_of_gemma_are_cut_into_groups_as_large_as_the_full_ones) {
  const KvLayout layout = kv_layout(testing::tiny_gemma3(), KvFormat::kF16);
  EXPECT_EQ(layout.layers_per_block, 1);
  ASSERT_EQ(layout.groups.size(), 5u);
  EXPECT_EQ(layout.groups[0].kind, KvKind::kFull);
  EXPECT_EQ(layout.groups[1].window, 40);
  EXPECT_EQ(layout.num_kv_heads, 2);
  EXPECT_EQ(layout.head_dim_k, 32);
}

TEST(Config, published_kv_sizes_come_out) {
  ModelConfig llama_7b = testing::tiny_llama();
  llama_7b.num_heads = llama_7b.num_kv_heads = 32;
  llama_7b.head_dim = 128;
  llama_7b.layers.assign(32, LayerConfig{});
  EXPECT_EQ(kv_layout(llama_7b, KvFormat::kF16).bytes_per_token(), 512 << 10);
  ModelConfig mistral_7b = llama_7b;
  mistral_7b.num_kv_heads = 8;
  EXPECT_EQ(kv_layout(mistral_7b, KvFormat::kF16).bytes_per_token(), 128 << 10);
}

TEST(Config, impossible_numbers_of_latent_attention_are_refused_by_their_keys) {
  struct Case {
    const char* key;
    std::function<void(ModelConfig&)> spoil;
  };
  const Case cases[] = {
      {"attention.kv_lora_rank", [](ModelConfig& c) { c.latent.kv_rank = 1 << 20; }},
      {"attention.q_lora_rank", [](ModelConfig& c) { c.latent.q_rank = -1; }},
      {"attention.key_length_mla", [](ModelConfig& c) { c.latent.nope_dim = 0; }},
      {"attention.value_length_mla", [](ModelConfig& c) { c.latent.value_dim = 0; }},
      {"cached keys", [](ModelConfig& c) { c.num_kv_heads = 5; }},
      {"cached keys", [](ModelConfig& c) { c.ropes[0].dims = 10; }},
      {"cached keys", [](ModelConfig& c) { c.head_dim = 64; }},
  };
  for (const Case& bad : cases) {
    ModelConfig config = testing::tiny_deepseek();
    bad.spoil(config);
    const Outcome outcome = validate(config);
    ASSERT_FALSE(outcome) << bad.key;
    EXPECT_THAT(outcome.error().message(), HasSubstr(bad.key));
  }
}

// DeepSeek-V2 and V3 cache 512 + 64 numbers a token and layer.
TEST(Config, latent_attention_caches_the_latent_and_one_rotated_key) {
  ModelConfig config = testing::tiny_deepseek();
  config.num_heads = 128;
  config.latent = {
      .kv_rank = 512, .q_rank = 1536, .nope_dim = 128, .rope_dim = 64, .value_dim = 128};
  config.head_dim = 576;
  config.ropes[0].dims = 64;
  config.layers.resize(61);
  ASSERT_TRUE(validate(config));
  EXPECT_EQ(kv_layout(config, KvFormat::kF16).layer_bytes_per_token(), 576 * 2);
  EXPECT_EQ(kv_layout(config, KvFormat::kF16).bytes_per_token(), 61 * 576 * 2);
  EXPECT_EQ(kv_layout(config, KvFormat::kF32).bytes_per_token(), 61 * 576 * 4);
}

TEST(Tensors, a_missing_one_is_named) {
  const ModelConfig config = testing::tiny_qwen2();
  for (const char* name : {"output_norm.weight", "blk.2.attn_k.bias", "output.weight"}) {
    testing::RandomWeights weights(config, {});
    weights.erase(name);
    const Outcome outcome = check_tensors(config, weights);
    ASSERT_FALSE(outcome);
    EXPECT_THAT(outcome.error().message(), HasSubstr(name));
  }
}

TEST(Tensors, wrong_shapes_and_types_are_named_with_both_shapes) {
  const ModelConfig config = testing::tiny_llama();
  testing::RandomWeights weights(config, {});
  weights.view("blk.1.ffn_up.weight").shape[0] = 161;
  EXPECT_THAT(
      check_tensors(config, weights).error().message(),
      HasSubstr("blk.1.ffn_up.weight is [161, 96], but the model's numbers make it [160, 96]"));

  testing::RandomWeights integers(config, {});
  integers.view("blk.1.ffn_up.weight").dtype = DType::kI32;
  EXPECT_THAT(check_tensors(config, integers).error().message(), HasSubstr("type I32"));

  testing::RandomWeights blocks(config, {});
  blocks.view("blk.1.ffn_up.weight").dtype = DType::kQ4_K;  // 96 columns are no block of 256
  EXPECT_THAT(check_tensors(config, blocks).error().message(), HasSubstr("whole blocks"));

  testing::RandomWeights norms(config, {});
  norms.view("output_norm.weight").dtype = DType::kQ8_0;
  EXPECT_THAT(check_tensors(config, norms).error().message(), HasSubstr("output_norm.weight"));
}

TEST(Registry, lists_each_architecture_once) {
  EXPECT_EQ(find_architecture("nosuch"), nullptr);
  for (const Architecture* row : architectures()) {
    EXPECT_EQ(find_architecture(row->name), row);
    EXPECT_NE(row->configure, nullptr);
    for (const std::string_view hf_class : row->hf_classes)
      EXPECT_EQ(find_hf_architecture(hf_class), row);
  }
}

}  // namespace
}  // namespace dunlin
