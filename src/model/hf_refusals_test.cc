// What config.json asks for and is not computed is refused by name; what it says in another way is
// understood; errors speak of its keys.
#include "model/hf_refusals.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/hf_checkpoint.h"
#include "model/open_model.h"
#include "model/registry.h"
#include "support/scratch_folder.h"

namespace dunlin {
namespace {

using nlohmann::json;

// A tiny checkpoint with some keys of config.json changed; null removes one.
class ChangedConfig {
 public:
  ChangedConfig(const std::string& name, const json& changes) {
    const std::string from = std::string(DUNLIN_TEST_DATA_DIR "/tiny/") + name;
    json config = json::parse(std::ifstream(from + "/config.json"));
    config.update(changes);
    std::ofstream(scratch_.path() + "/config.json") << config;
    std::filesystem::create_symlink(from + "/model.safetensors",
                                    scratch_.path() + "/model.safetensors");
  }

  Result<ModelConfig> read() const {
    DUNLIN_ASSIGN(checkpoint, open_checkpoint(scratch_.path()));
    return read_config(*checkpoint);
  }
  const std::string& path() const { return scratch_.path(); }
  std::string refusal() const {
    const auto config = read();
    return config ? "" : config.error().message();
  }

 private:
  ScratchFolder scratch_;
};

TEST(HfRefusals, name_the_key_of_what_is_not_computed) {
  const std::tuple<const char*, const char*, json> cases[] = {
      {"llama", "hidden_act", "gelu"},
      {"qwen3", "hidden_act", "relu"},
      {"gemma2", "hidden_activation", "gelu"},
      {"gemma3", "hidden_activation", "silu"},
      {"starcoder2", "hidden_act", "silu"},
      {"gpt2", "activation_function", "relu"},
      {"falcon", "activation", "relu"},
      {"gemma3", "use_bidirectional_attention", true},
      {"llama", "use_bidirectional_attention", true},
      {"falcon", "alibi", true},
      {"gpt2", "scale_attn_weights", false},
      {"gpt2", "scale_attn_by_inverse_layer_idx", true},
      {"deepseek-v3", "rope_interleave", false},
      {"qwen2-moe", "qkv_bias", false},
      {"olmo2", "clip_qkv", 8.0},
      {"llama", "attention_bias", true},
      {"llama", "mlp_bias", true},
      {"qwen3", "attention_bias", true},
      {"deepseek-v2", "attention_bias", true},
      {"granite", "layer_types", {"full_attention", "sliding_attention", "full_attention"}},
      {"mistral-swa", "layer_types", {"chunked_attention", "full_attention", "full_attention"}},
      {"granite", "layer_types", {"full_attention", "full_attention"}},
      {"gemma2", "layer_types", {"sliding_attention", "full_attention"}},
      {"qwen3", "layer_types", json(4, "full_attention")},
      {"deepseek-v2", "topk_method", "anything"},
      {"gemma3",
       "rope_parameters",
       {{"full_attention", {{"rope_theta", 1e6}}},
        {"sliding_attention", {{"rope_theta", 1e4}, {"rope_type", "yarn"}}}}},
      {"llama", "hidden_act", 3},
      // What weights say otherwise.
      {"starcoder2", "use_bias", 3},
      {"falcon", "bias", true},
      {"qwen2", "tie_word_embeddings", false},
      {"qwen3-moe", "mlp_only_layers", {1}},
      {"qwen2-moe", "decoder_sparse_step", 2},
      {"deepseek-v3", "first_k_dense_replace", 0},
      {"deepseek-v3", "first_k_dense_replace", 2},
      {"deepseek-v2", "moe_layer_freq", 2},
      {"smollm3", "no_rope_layer_interval", 0},
  };
  for (const auto& [name, key, value] : cases) {
    json changes = {{key, value}};
    if (name == std::string_view("smollm3")) changes["no_rope_layers"] = nullptr;
    const std::string message = ChangedConfig(name, changes).refusal();
    EXPECT_NE(message.find(key), std::string::npos) << name << " " << key << ": " << message;
    EXPECT_NE(message.find("config.json"), std::string::npos) << message;
  }
}

TEST(HfRefusals, let_the_architectures_own_values_pass) {
  const std::tuple<const char*, const char*, json> cases[] = {
      {"llama", "hidden_act", "swish"},
      {"llama", "hidden_act", nullptr},
      {"llama-mha-bias", "attention_bias", true},
      {"gemma3", "hidden_act", "anything"},  // what Gemma's files say there is not read
      {"gemma3", "use_bidirectional_attention", false},
      {"glm4", "layer_types", json(3, "full_attention")},
      {"llama", "clip_qkv", nullptr},
      {"starcoder2", "use_bias", true},
      {"qwen2-moe", "decoder_sparse_step", 1},
      {"deepseek-v2", "moe_layer_freq", 1},
  };
  for (const auto& [name, key, value] : cases)
    EXPECT_EQ(ChangedConfig(name, {{key, value}}).refusal(), "") << name << " " << key;
}

// Their output layer is read by no one.
TEST(HfRefusals, let_embedding_models_have_no_head) {
  const ChangedConfig changed("qwen2", {{"tie_word_embeddings", false}});
  ASSERT_NE(changed.refusal(), "");
  std::filesystem::create_directory(changed.path() + "/1_Pooling");
  std::ofstream(changed.path() + "/1_Pooling/config.json") << R"({"pooling_mode_lasttoken": true})";
  EXPECT_EQ(changed.refusal(), "");
}

TEST(HfImport, counts_the_layers_without_rope) {
  const auto layers = [](const json& changes) {
    const auto config = ChangedConfig("smollm3", changes).read();
    if (!config) return config.error().message();
    std::string ropes;
    for (const LayerConfig& layer : config->layers) ropes += layer.rope_idx == kNoRope ? "-" : "r";
    return ropes;
  };
  EXPECT_EQ(layers(json::object()), "rrr-");
  EXPECT_EQ(layers({{"no_rope_layers", nullptr}, {"no_rope_layer_interval", 2}}), "r-r-");
  EXPECT_EQ(layers({{"no_rope_layers", nullptr}, {"no_rope_layer_interval", nullptr}}), "rrr-");
}

std::string windows_of(const ChangedConfig& changed) {
  const auto config = changed.read();
  if (!config) return config.error().message();
  std::string windows;
  for (const LayerConfig& layer : config->layers) windows += layer.window > 0 ? "w" : "f";
  return windows;
}

// Every so many layers one sees all; today's files list the layers instead.
TEST(HfImport, takes_the_older_period_of_windows) {
  const auto gemma = [](const json& changes) {
    json all = {{"layer_types", nullptr}, {"_sliding_window_pattern", nullptr}};
    all.update(changes);
    return windows_of(ChangedConfig("gemma3", all));
  };
  const std::string usual = gemma(json::object());
  EXPECT_EQ(gemma({{"_sliding_window_pattern", 6}}), usual);
  const std::string alternate = gemma({{"sliding_window_pattern", 2}});
  ASSERT_EQ(alternate.size(), usual.size());
  for (std::size_t i = 0; i < alternate.size(); ++i) EXPECT_EQ(alternate[i], i % 2 ? 'f' : 'w');
  EXPECT_EQ(gemma({{"_sliding_window_pattern", 1}}), std::string(usual.size(), 'f'));
  EXPECT_NE(gemma({{"sliding_window_pattern", 0}}).find("sliding_window_pattern"), usual.npos);
}

TEST(HfImport, takes_the_layer_types_of_mistral) {
  const std::string usual = windows_of(ChangedConfig("mistral-swa", json::object()));
  ASSERT_EQ(usual, std::string(usual.size(), 'w'));
  json types = json::array();
  for (std::size_t i = 0; i < usual.size(); ++i)
    types.push_back(i % 2 == 0 ? "full_attention" : "sliding_attention");
  const std::string mixed = windows_of(ChangedConfig("mistral-swa", {{"layer_types", types}}));
  EXPECT_EQ(mixed.substr(0, 2), "fw");
}

TEST(HfImport, errors_name_the_tensors_of_the_files) {
  const std::tuple<const char*, json, const char*> cases[] = {
      {"llama", {{"num_key_value_heads", 1}}, "tensor model.layers.0.self_attn.k_proj.weight is"},
      {"llama",
       {{"num_hidden_layers", 2}},
       "tensor 'model.layers.2.self_attn.k_proj.weight' is not"},
      {"phi3", {{"num_key_value_heads", 1}}, "tensor model.layers.0.self_attn.qkv_proj.weight is"},
      {"gpt2", {{"n_inner", 8}}, "tensor transformer.h.0.mlp.c_fc.weight is"},
      {"llama", {{"vocab_size", 7}}, "is 7, but tensor model.embed_tokens.weight has 320 rows"},
  };
  for (const auto& [name, changes, words] : cases) {
    const ChangedConfig changed(name, changes);
    const auto opened = open_model(changed.path(), {});
    ASSERT_FALSE(opened) << name << changes;
    const std::string& message = opened.error().message();
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_EQ(message.find("blk."), std::string::npos) << message;
  }
}

TEST(HfImport, errors_name_the_keys_of_config_json) {
  const std::tuple<const char*, json, const char*> cases[] = {
      {"llama", {{"num_hidden_layers", 0}}, "num_hidden_layers is 0"},
      {"llama", {{"num_attention_heads", 1000000}}, "num_attention_heads is 1000000"},
      {"llama", {{"num_key_value_heads", 3}}, "num_key_value_heads"},
      {"llama", {{"intermediate_size", -5}}, "intermediate_size is -5"},
      {"llama", {{"max_position_embeddings", 0}}, "max_position_embeddings is 0"},
      {"mixtral", {{"num_experts_per_tok", 99}}, "num_experts_per_tok is 99"},
      {"llama31-rope", {{"head_dim", 1LL << 40}}, "head_dim is 1099511627776"},
  };
  for (const auto& [name, changes, words] : cases) {
    const std::string message = ChangedConfig(name, changes).refusal();
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_NE(message.find("/config.json: "), std::string::npos) << message;
    EXPECT_EQ(message.find("llama."), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace dunlin
