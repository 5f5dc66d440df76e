// Small random checkpoints, one an architecture or variant, against the logits that Hugging Face
// transformers gives for them in float32 (tests/golden/tiny.tar.xz): the whole model against
// another implementation, where no real model is at hand.
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
    options.kv_dtype = DType::kF32;
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

}  // namespace
}  // namespace dunlin
