// Small random checkpoints of the Llama family, Qwen 2 and Gemma 3 against the logits that Hugging
// Face transformers gives for them in float32 (tests/golden/tiny-decoder.tar.xz): the whole model
// against another implementation, where no real model is at hand.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <numbers>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/loader.h"
#include "model/single_sequence.h"

namespace dunlin {
namespace {

using nlohmann::json;

constexpr float kTolerance = 2e-3f;  // of logits of size 1 to 5
constexpr double kGreedyMargin = 0.01;

std::string folder_of(const std::string& name) {
  return std::string(DUNLIN_TEST_DATA_DIR "/tiny-decoder/") + name + "/";
}

// Numbers of the RoPE scaling of Llama 3.1: what each frequency is divided by.
std::vector<float> llama3_factors(const json& rope, int dims) {
  const double factor = rope["factor"], low = rope["low_freq_factor"],
               high = rope["high_freq_factor"];
  const double context = rope["original_max_position_embeddings"], theta = rope["rope_theta"];
  std::vector<float> factors;
  for (int i = 0; i < dims / 2; ++i) {
    const double wavelength = 2 * std::numbers::pi * std::pow(theta, 2.0 * i / dims);
    const double smooth = std::clamp((context / wavelength - low) / (high - low), 0.0, 1.0);
    factors.push_back(static_cast<float>(1.0 / (smooth + (1.0 - smooth) / factor)));
  }
  return factors;
}

ModelConfig config_of(const json& c) {
  ModelConfig config;
  config.architecture = c["model_type"];
  config.hidden_size = c["hidden_size"];
  config.num_heads = c["num_attention_heads"];
  config.num_kv_heads = c["num_key_value_heads"];
  config.head_dim = c.value("head_dim", config.hidden_size / config.num_heads);
  config.ffn_size = c["intermediate_size"];
  config.vocab_size = c["vocab_size"];
  config.context_length = c["max_position_embeddings"];
  config.norm_eps = c["rms_norm_eps"];
  config.attention_scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim));
  config.tied_head = c["tie_word_embeddings"];
  config.qkv_bias = c.value("attention_bias", false) || config.architecture == "qwen2";
  config.o_bias = c.value("attention_bias", false);
  config.ffn_bias = c.value("mlp_bias", false);
  const bool is_gemma = config.architecture == "gemma3_text";
  for (const char* kind : {"full_attention", "sliding_attention"}) {
    const json& all = c["rope_parameters"];
    const json& rope = all.contains(kind) ? all[kind] : all;
    config.ropes.push_back(
        {rope["rope_theta"], config.head_dim, 1.0f, rope["rope_type"] == "llama3"});
    if (rope["rope_type"] == "linear") config.ropes.back().position_divisor = rope["factor"];
    if (!is_gemma) break;
  }
  const int window = c.contains("sliding_window") && !c["sliding_window"].is_null()
                         ? c["sliding_window"].get<int>()
                         : 0;
  for (int i = 0; i < c["num_hidden_layers"]; ++i) {
    const bool sees_all =
        is_gemma && c["layer_types"][static_cast<std::size_t>(i)] == "full_attention";
    config.layers.push_back({sees_all ? 0 : window, is_gemma && !sees_all ? 1 : 0});
  }
  if (is_gemma) {
    config.embedding_scale = std::sqrt(static_cast<float>(config.hidden_size));
    config.activation = Activation::kGeluTanh;
    config.qk_norm = config.post_norms = true;
  }
  return config;
}

// A safetensors file under canonical names.
class Checkpoint final : public WeightSource {
 public:
  Checkpoint(const std::string& path, const json& config)
      : is_gemma_(config["model_type"] == "gemma3_text") {
    std::ifstream file(path, std::ios::binary);
    std::uint64_t header_size = 0;
    file.read(reinterpret_cast<char*>(&header_size), sizeof header_size);
    std::string header(header_size, '\0');
    file.read(header.data(), static_cast<std::streamsize>(header_size));
    const std::string data(std::istreambuf_iterator<char>(file), {});
    const json tensors = json::parse(header);
    for (const auto& [name, info] : tensors.items()) {
      if (name == "__metadata__") continue;
      const std::size_t begin = info["data_offsets"][0], end = info["data_offsets"][1];
      std::vector<float> values((end - begin) / sizeof(float));
      std::memcpy(values.data(), data.data() + begin, end - begin);
      add(canonical(name), info["shape"], std::move(values));
    }
    if (config["rope_parameters"].value("rope_type", "") == "llama3") {
      std::vector<float> factors = llama3_factors(config["rope_parameters"], config["head_dim"]);
      const auto size = std::ssize(factors);
      add("rope_freqs.weight", {size}, std::move(factors));
    }
  }

  std::optional<SourceTensor> find(std::string_view name) const override {
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) return std::nullopt;
    SourceTensor tensor;
    tensor.view = it->second.view;
    tensor.view.data = reinterpret_cast<const std::byte*>(it->second.values.data());
    return tensor;
  }
  void release(const SourceTensor& /*tensor*/) const override {}

 private:
  struct Tensor {
    std::vector<float> values;
    TensorView view;
  };

  void add(const std::string& name, const std::vector<std::int64_t>& shape,
           std::vector<float> values) {
    if (is_gemma_ && name.ends_with("norm.weight")) {
      for (float& value : values) value += 1.0f;
    }
    Tensor& tensor = tensors_[name];
    tensor.values = std::move(values);
    tensor.view.rank = static_cast<int>(shape.size());
    tensor.view.shape = {1, 1, 1, 1};
    std::copy(shape.begin(), shape.end(), tensor.view.shape.begin());
  }

  std::string canonical(const std::string& name) const {
    static const std::map<std::string, std::string> kWhole = {
        {"model.embed_tokens.weight", "token_embd.weight"},
        {"model.norm.weight", "output_norm.weight"},
        {"lm_head.weight", "output.weight"}};
    if (const auto it = kWhole.find(name); it != kWhole.end()) return it->second;
    std::map<std::string, std::string> parts = {
        {"input_layernorm", "attn_norm"},
        {"self_attn.q_proj", "attn_q"},
        {"self_attn.k_proj", "attn_k"},
        {"self_attn.v_proj", "attn_v"},
        {"self_attn.o_proj", "attn_output"},
        {"self_attn.q_norm", "attn_q_norm"},
        {"self_attn.k_norm", "attn_k_norm"},
        {"mlp.gate_proj", "ffn_gate"},
        {"mlp.up_proj", "ffn_up"},
        {"mlp.down_proj", "ffn_down"},
        {"post_attention_layernorm", is_gemma_ ? "post_attention_norm" : "ffn_norm"},
        {"pre_feedforward_layernorm", "ffn_norm"},
        {"post_feedforward_layernorm", "post_ffw_norm"}};
    const std::string prefix = "model.layers.";
    const std::size_t layer_end = name.find('.', prefix.size()), kind = name.rfind('.');
    return "blk." + name.substr(prefix.size(), layer_end - prefix.size()) + "." +
           parts.at(name.substr(layer_end + 1, kind - layer_end - 1)) + name.substr(kind);
  }

  bool is_gemma_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

class TinyGoldenTest : public ::testing::TestWithParam<const char*> {};

TEST_P(TinyGoldenTest, every_instruction_set_gives_the_reference_logits_and_greedy_tokens) {
  const std::string folder = folder_of(GetParam());
  const json config_json = json::parse(std::ifstream(folder + "config.json"));
  const json golden = json::parse(std::ifstream(folder + "reference.json"));
  const ModelConfig config = config_of(config_json);
  const Checkpoint source(folder + "model.safetensors", config_json);
  const std::vector<TokenId> ids = golden["input_ids"];
  std::vector<std::int32_t> positions;
  for (const auto& [position, row] : golden["logits"].items())
    positions.push_back(std::stoi(position));
  std::sort(positions.begin(), positions.end());

  for (const Isa isa : supported_isas()) {
    LoadOptions options;
    options.isa = isa;
    options.kv_dtype = DType::kF32;
    const Result<std::unique_ptr<Model>> model = load_model(source, config, options);
    ASSERT_TRUE(model) << model.error().message();
    SingleSequence sequence(**model, 128, 40);
    std::size_t rows = 0;
    sequence.append(ids, positions, [&](std::int32_t position, std::span<const float> row) {
      const std::vector<float> want = golden["logits"][std::to_string(position)];
      ASSERT_EQ(row.size(), want.size());
      float worst = 0;
      for (std::size_t i = 0; i < row.size(); ++i)
        worst = std::max(worst, std::fabs(row[i] - want[i]));
      EXPECT_LE(worst, kTolerance) << isa_name(isa) << " at " << position;
      ++rows;
    });
    EXPECT_EQ(rows, 8u);

    sequence.truncate(47);
    std::span<const float> row = sequence.append(std::span(ids).subspan(47, 1));
    const std::vector<TokenId> greedy = golden["greedy_from_first_48"];
    const std::vector<double> margins = golden["greedy_margins"];
    for (std::size_t i = 0; i < greedy.size(); ++i) {
      const auto best = std::max_element(row.begin(), row.end()) - row.begin();
      if (margins[i] > kGreedyMargin) {
        EXPECT_EQ(best, greedy[i]) << isa_name(isa) << " step " << i;
      }
      row = sequence.append({&greedy[i], 1});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, TinyGoldenTest,
                         ::testing::Values("llama", "llama-mqa", "llama-mha-bias", "llama-linear",
                                           "llama31-rope", "mistral-swa", "qwen2", "gemma3"),
                         [](const auto& param_info) {
                           std::string name = param_info.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace dunlin
