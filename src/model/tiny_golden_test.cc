// Small random checkpoints, one an architecture or variant, against the logits that Hugging Face
// transformers gives for them in float32 (tests/golden/tiny.tar.xz): the whole model against
// another implementation, where no real model is at hand.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/open_model.h"
#include "support/reference_checks.h"
#include "support/scratch_folder.h"

namespace dunlin {
namespace {

using nlohmann::json;

std::string folder_of(const std::string& name) {
  return std::string(DUNLIN_TEST_DATA_DIR "/tiny/") + name + "/";
}

class TinyGoldenTest : public ::testing::TestWithParam<const char*> {};

TEST_P(TinyGoldenTest, every_instruction_set_gives_the_reference_logits_and_greedy_tokens) {
  const std::string folder = folder_of(GetParam());
  const json golden = testing::read_reference(folder);
  // transformers takes short factors until a sequence is longer than the first training's context.
  const bool is_longrope = std::string_view(GetParam()) == "phi3-longrope";
  const std::size_t num_short = is_longrope ? 64 - 48 + 1 : 0;
  for (const Isa isa : supported_isas()) {
    LoadOptions options;
    options.isa = isa;
    options.kv_formats = KvFormat::kF32;
    Result<OpenedModel> opened = open_model(folder, options);
    ASSERT_TRUE(opened) << opened.error().message();
    testing::expect_reference_logits(*opened->model, golden, isa_name(isa));
    testing::expect_reference_in_a_batch(*opened->model, golden, isa_name(isa));
    testing::expect_reference_greedy(*opened->model, golden, isa_name(isa), num_short);
    if (num_short == 0) continue;
    options.max_context = 64;
    opened = open_model(folder, options);
    ASSERT_TRUE(opened) << opened.error().message();
    testing::expect_reference_greedy(*opened->model, golden, isa_name(isa), 0, num_short);
  }
}

TEST_P(TinyGoldenTest, the_same_as_gguf) {
  const std::string folder = folder_of(GetParam());
  testing::expect_reference_as_gguf(folder, testing::read_reference(folder));
}

INSTANTIATE_TEST_SUITE_P(All, TinyGoldenTest,
                         ::testing::Values("cohere2", "deepseek-v2", "deepseek-v3", "falcon",
                                           "falcon-mha", "falcon-new", "gemma2", "gemma3", "glm4",
                                           "gpt-oss", "gpt2", "granite", "llama", "llama-linear",
                                           "llama-mha-bias", "llama-mqa", "llama-yarn",
                                           "llama31-rope", "mistral-swa", "mixtral", "olmo2",
                                           "phi3", "phi3-longrope", "qwen2", "qwen2-moe", "qwen3",
                                           "qwen3-moe", "smollm3", "starcoder2"),
                         [](const auto& param_info) {
                           std::string name = param_info.param;
                           std::erase(name, '-');
                           return name;
                         });

// The folder with another config.json.
void copy_with_config(const std::string& name, const json& config, const ScratchFolder& scratch) {
  std::filesystem::create_symlink(folder_of(name) + "model.safetensors",
                                  scratch.path() + "/model.safetensors");
  std::ofstream(scratch.path() + "/config.json") << config;
}

// As transformers wrote them until its version 5.
json in_the_older_spelling(json config) {
  json rope = config["rope_parameters"];
  config.erase("rope_parameters");
  if (rope.contains("full_attention")) {
    config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"];
    rope = json(rope["full_attention"]);
  }
  for (const char* key : {"rope_theta", "partial_rotary_factor"}) {
    if (rope.contains(key)) config[key] = rope[key];
    rope.erase(key);
  }
  const std::string type = rope.value("rope_type", "default");
  rope.erase("rope_type");
  rope["type"] = type;
  config["rope_scaling"] = type == "default" ? json() : rope;
  return config;
}

TEST_P(TinyGoldenTest, the_older_spelling_of_its_rope_says_the_same) {
  const json config = json::parse(std::ifstream(folder_of(GetParam()) + "config.json"));
  if (!config.contains("rope_parameters")) GTEST_SKIP() << "is in that spelling, or has no RoPE";
  const ScratchFolder scratch;
  copy_with_config(GetParam(), in_the_older_spelling(config), scratch);
  const auto older = HfCheckpoint::open(scratch.path());
  const auto newer = HfCheckpoint::open(folder_of(GetParam()));
  ASSERT_TRUE(newer);
  ASSERT_TRUE(older) << older.error().message();
  EXPECT_EQ((*older)->all_metadata(), (*newer)->all_metadata());
  for (const CheckpointTensor& tensor : (*newer)->tensors()) {
    if (!tensor.name.starts_with("rope")) continue;  // factors that are made of config.json
    const auto same = (*older)->find(tensor.name);
    ASSERT_TRUE(same) << tensor.name;
    EXPECT_EQ(std::memcmp(same->data, tensor.view.data,
                          static_cast<std::size_t>(tensor.view.size_bytes())),
              0);
  }
}

// tiiuae's first files, before Falcon was part of transformers.
TEST(TinyConfig, falcons_first_spelling_is_read) {
  for (const char* name : {"falcon", "falcon-mha", "falcon-new"}) {
    json config = json::parse(std::ifstream(folder_of(name) + "config.json"));
    config["architectures"] = {"RWForCausalLM"};
    config["n_head"] = config["num_attention_heads"];
    config["n_layer"] = config["num_hidden_layers"];
    if (config["new_decoder_architecture"]) config["n_head_kv"] = config["num_kv_heads"];
    for (const char* key : {"num_attention_heads", "num_hidden_layers", "num_kv_heads",
                            "new_decoder_architecture", "max_position_embeddings"})
      config.erase(key);
    const ScratchFolder scratch;
    copy_with_config(name, config, scratch);
    LoadOptions options;
    options.kv_formats = KvFormat::kF32;
    const Result<OpenedModel> opened = open_model(scratch.path(), options);
    ASSERT_TRUE(opened) << opened.error().message();
    testing::expect_reference_logits(*opened->model, testing::read_reference(folder_of(name)),
                                     name);
  }
}

TEST(TinyConfig, what_a_model_asks_for_beyond_its_architecture_here_is_refused_by_name) {
  const std::tuple<std::string, std::string, json> cases[] = {
      {"falcon", "alibi", true},
      {"falcon", "parallel_attn", false},
      {"falcon", "activation", "relu"},
      {"gpt2", "activation_function", "relu"},
      {"gpt2", "scale_attn_weights", false},
      {"gpt2", "scale_attn_by_inverse_layer_idx", true},
  };
  for (const auto& [name, key, value] : cases) {
    const ScratchFolder scratch;
    json config = json::parse(std::ifstream(folder_of(name) + "config.json"));
    config[key] = value;
    std::ofstream(scratch.path() + "/config.json") << config;
    const auto checkpoint = HfCheckpoint::open(scratch.path());
    ASSERT_FALSE(checkpoint);
    EXPECT_NE(checkpoint.error().message().find(key), std::string::npos)
        << checkpoint.error().message();
  }
}

// The folder with another rope_parameters: what is read, or why it is refused.
std::string rope_read(const std::string& name, const json& changes = json::object()) {
  const ScratchFolder scratch;
  std::filesystem::copy_file(folder_of(name) + "model.safetensors",
                             scratch.path() + "/model.safetensors");
  json config = json::parse(std::ifstream(folder_of(name) + "config.json"));
  config["rope_parameters"].update(changes);
  std::ofstream(scratch.path() + "/config.json") << config;
  const auto checkpoint = HfCheckpoint::open(scratch.path());
  if (!checkpoint) return checkpoint.error().message();
  std::string read;
  for (const auto& [key, value] : (*checkpoint)->all_metadata()) {
    if (key.find(".rope.") == key.npos) continue;
    read += key.substr(key.find(".rope.") + 1) + " ";
    if (const bool* flag = std::get_if<bool>(&value)) read += *flag ? "true " : "false ";
  }
  return read;
}

// It is the default up to max_position_embeddings, the longest text that is taken.
TEST(TinyConfig, ntk_scaling_that_begins_behind_the_context_changes_nothing) {
  EXPECT_EQ(rope_read("llama", {{"rope_type", "dynamic"}, {"factor", 4.0}}), rope_read("llama"));
  for (const auto& [key, value] :
       {std::pair("alpha", 1000), std::pair("original_max_position_embeddings", 64)}) {
    json changes = {{"rope_type", "dynamic"}, {"factor", 4.0}};
    changes[key] = value;
    const std::string message = rope_read("llama", changes);
    EXPECT_NE(message.find("RoPE type 'dynamic' is not supported"), message.npos) << message;
  }
}

// GPT-OSS doesn't where a GGUF file is silent, transformers does where a folder is.
TEST(TinyConfig, whether_yarn_rounds_its_ramp_is_always_said) {
  EXPECT_NE(rope_read("gpt-oss").find("yarn_round_ramp false"), std::string::npos);
  EXPECT_NE(rope_read("gpt-oss", {{"truncate", nullptr}}).find("yarn_round_ramp true"),
            std::string::npos);
}

}  // namespace
}  // namespace dunlin
