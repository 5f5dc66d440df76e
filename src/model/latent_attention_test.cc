// What files say of latent attention, in numbers of the model. That it computes what the reference
// implementation does is tiny_golden_test.cc's, the promises of a step are decoder_test.cc's.
#include "model/latent_attention.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "model/hf_checkpoint.h"
#include "model/hf_transforms.h"
#include "model/loader.h"
#include "model/registry.h"
#include "model/single_sequence.h"
#include "support/random_weights.h"
#include "support/scratch_folder.h"

namespace dunlin {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// A file with metadata and the shapes of some tensors.
class KeysOnly final : public Checkpoint {
 public:
  KeysOnly() { add_tensor("token_embd.weight", {331, 96, 1, 1}); }
  std::map<std::string, MetadataValue, std::less<>> values;

  void add_tensor(const std::string& name, std::array<std::int64_t, 4> shape) {
    tensors_[name] = {DType::kF32, 2, shape, nullptr};
  }
  const std::string& path() const override { return path_; }
  std::optional<MetadataValue> metadata(std::string_view key) const override {
    const auto it = values.find(key);
    return it == values.end() ? std::nullopt : std::optional(it->second);
  }
  std::vector<CheckpointTensor> tensors() const override { return {}; }
  Outcome check_unchanged() const override { return {}; }
  std::optional<TensorView> find(std::string_view name) const override {
    const auto it = tensors_.find(name);
    return it == tensors_.end() ? std::nullopt : std::optional(it->second);
  }
  void release(const TensorView& /*tensor*/) const override {}

 private:
  std::string path_ = "file";
  std::map<std::string, TensorView, std::less<>> tensors_;
};

// DeepSeek-V2-Lite's attention as llama.cpp writes it.
KeysOnly lite_keys() {
  KeysOnly file;
  const auto set = [&](const char* key, MetadataValue value) {
    file.values[std::string("deepseek2.") + key] = std::move(value);
  };
  file.values["general.architecture"] = std::string("deepseek2");
  set("embedding_length", std::int64_t{96});
  set("block_count", std::int64_t{2});
  set("context_length", std::int64_t{163840});
  set("feed_forward_length", std::int64_t{160});
  set("attention.head_count", std::int64_t{16});
  set("attention.head_count_kv", std::int64_t{1});
  set("attention.layer_norm_rms_epsilon", 1e-6);
  set("attention.kv_lora_rank", std::int64_t{512});
  set("attention.key_length", std::int64_t{576});
  set("attention.value_length", std::int64_t{512});
  set("attention.key_length_mla", std::int64_t{192});
  set("attention.value_length_mla", std::int64_t{128});
  set("rope.dimension_count", std::int64_t{64});
  set("rope.freq_base", 10000.0);
  set("rope.scaling.type", std::string("yarn"));
  set("rope.scaling.factor", 40.0);
  set("rope.scaling.original_context_length", std::int64_t{4096});
  set("rope.scaling.yarn_log_multiplier", 0.0707);
  return file;
}

TEST(LatentAttention, reads_the_keys_of_llama_cpp) {
  const Result<ModelConfig> config = read_config(lite_keys());
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->latent.kv_rank, 512);
  EXPECT_EQ(config->latent.q_rank, 0);
  EXPECT_EQ(config->latent.nope_dim, 128);
  EXPECT_EQ(config->latent.rope_dim, 64);
  EXPECT_EQ(config->latent.value_dim, 128);
  EXPECT_EQ(config->head_dim, 576);
  EXPECT_EQ(config->attn_out_size(), 16 * 128);
  // What YaRN does to scores: (0.1 * 0.707 * ln 40 + 1)^2; to rotation nothing.
  const double scale = 0.0707 * std::log(40.0) + 1;
  EXPECT_NEAR(config->attention_scale, scale * scale / std::sqrt(192.0), 1e-6);
  EXPECT_EQ(config->ropes[0].attention_factor, 1.0f);
  EXPECT_EQ(kv_layout(*config, KvFormat::kF16).bytes_per_token(), 2 * 576 * 2);
}

TEST(LatentAttention, refuses_what_is_missing_or_impossible_by_name) {
  KeysOnly file = lite_keys();
  file.values.erase("deepseek2.attention.value_length_mla");
  EXPECT_THAT(read_config(file).error().message(), HasSubstr("attention.value_length_mla"));
  file = lite_keys();
  file.values["deepseek2.attention.key_length_mla"] = std::int64_t{64};
  EXPECT_THAT(read_config(file).error().message(), HasSubstr("attention.key_length_mla"));
}

// As llama.cpp wrote it until May 2025: the sizes are those before absorption.
KeysOnly older_lite_keys() {
  KeysOnly file = lite_keys();
  file.add_tensor("blk.0.attn_kv_b.weight", {4096, 512, 1, 1});
  file.values.erase("deepseek2.attention.key_length_mla");
  file.values.erase("deepseek2.attention.value_length_mla");
  file.values["deepseek2.attention.head_count_kv"] = std::int64_t{16};
  file.values["deepseek2.attention.key_length"] = std::int64_t{192};
  file.values["deepseek2.attention.value_length"] = std::int64_t{128};
  return file;
}

TEST(LatentAttention, reads_the_older_keys) {
  const Result<ModelConfig> config = read_config(older_lite_keys());
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_TRUE(config->latent.fused_kv_b);
  EXPECT_EQ(config->latent.nope_dim, 128);
  EXPECT_EQ(config->latent.value_dim, 128);
  EXPECT_EQ(config->head_dim, 576);
  EXPECT_EQ(config->num_kv_heads, 1);
}

// Random weights of the split form, given out as the older one.
class FusedSource final : public WeightSource {
 public:
  FusedSource(const ModelConfig& config, const WeightSource& split) : split_(split) {
    const LatentAttention& latent = config.latent;
    const std::int64_t rows = latent.nope_dim + latent.value_dim, rank = latent.kv_rank;
    for (int i = 0; i < config.num_layers(); ++i) {
      std::vector<float>& fused = fused_[fmt::format("blk.{}.attn_kv_b.weight", i)];
      for (int h = 0; h < config.num_heads; ++h) {
        const auto* k = values(fmt::format("blk.{}.attn_k_b.{}.weight", i, h));
        const auto* v = values(fmt::format("blk.{}.attn_v_b.{}.weight", i, h));
        for (std::int64_t at = 0; at < latent.nope_dim * rank; ++at)
          fused.push_back(k[at % rank * latent.nope_dim + at / rank]);
        fused.insert(fused.end(), v, v + latent.value_dim * rank);
      }
      shape_ = {config.num_heads * rows, rank, 1, 1};
    }
  }
  std::optional<TensorView> find(std::string_view name) const override {
    if (const auto it = fused_.find(name); it != fused_.end()) {
      return TensorView{DType::kF32, 2, shape_,
                        reinterpret_cast<const std::byte*>(it->second.data())};
    }
    const bool is_part = name.find("_b.") != name.npos && name.find("attn_q") == name.npos;
    return is_part ? std::nullopt : split_.find(name);
  }
  void release(const TensorView& /*tensor*/) const override {}

 private:
  const float* values(const std::string& name) const {
    return reinterpret_cast<const float*>(split_.find(name)->data);
  }
  const WeightSource& split_;
  std::map<std::string, std::vector<float>, std::less<>> fused_;
  std::array<std::int64_t, 4> shape_{};
};

TEST(LatentAttention, takes_the_matrices_of_heads_from_one_tensor) {
  ModelConfig config = testing::tiny_deepseek();
  const testing::RandomWeights split(config, {});
  const FusedSource fused(config, split);
  const auto logits_of = [](const WeightSource& source, const ModelConfig& c) {
    LoadOptions options;
    options.num_threads = 1;
    const auto model = load_model(source, c, options);
    EXPECT_TRUE(model) << model.error().message();
    SingleSequence sequence(**model, 16, 16);
    const std::vector<TokenId> ids = {1, 2, 3, 4, 5};
    const std::span<const float> row = sequence.append(ids);
    return std::vector<float>(row.begin(), row.end());
  };
  const std::vector<float> want = logits_of(split, config);
  EXPECT_FALSE(check_tensors(config, fused));
  config.latent.fused_kv_b = true;
  EXPECT_EQ(logits_of(fused, config), want);
}

std::vector<float> floats_of(const LazyTensor& tensor) {
  const LazyTensor::Bytes bytes = tensor.read();
  std::vector<float> values(static_cast<std::size_t>(tensor.view.num_elements()));
  std::memcpy(values.data(), bytes.data, values.size() * sizeof(float));
  return values;
}

TEST(HfTransforms, take_each_heads_rows_as_they_are_or_as_columns) {
  // Two heads of three rows.
  const std::vector<float> stored = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  TensorView view{DType::kF32, 2, {6, 2, 1, 1}, nullptr};
  view.data = reinterpret_cast<const std::byte*>(stored.data());
  const Result<LazyTensor> rows = rows_of_heads(stored_tensor(view), 2, 2, 1);
  ASSERT_TRUE(rows);
  EXPECT_EQ(floats_of(*rows), (std::vector<float>{4, 5, 10, 11}));
  EXPECT_EQ(rows->view.rank, 3);
  EXPECT_EQ(rows->view.shape, (std::array<std::int64_t, 4>{2, 1, 2, 1}));
  const Result<LazyTensor> columns = columns_of_heads(stored_tensor(view), 2, 0, 2);
  ASSERT_TRUE(columns);
  EXPECT_EQ(floats_of(*columns), (std::vector<float>{0, 2, 1, 3, 6, 8, 7, 9}));
  EXPECT_EQ(columns->view.shape, (std::array<std::int64_t, 4>{2, 2, 2, 1}));
  for (const auto& [heads, first, count] :
       {std::array<std::int64_t, 3>{4, 0, 1}, {2, 2, 2}, {0, 0, 1}, {2, -1, 1}}) {
    EXPECT_FALSE(rows_of_heads(stored_tensor(view), heads, first, count))
        << heads << first << count;
  }
}

// The golden folder with other numbers in its config.json.
std::string changed_folder(const ScratchFolder& scratch, const json& changes) {
  const std::string golden = DUNLIN_TEST_DATA_DIR "/tiny/deepseek-v3/";
  json config = json::parse(std::ifstream(golden + "config.json"));
  config.update(changes);
  std::ofstream(scratch.path() + "/config.json") << config;
  std::filesystem::copy(golden + "model.safetensors", scratch.path());
  return scratch.path();
}

TEST(LatentAttention, layers_that_predict_further_tokens_are_left_out) {
  const ScratchFolder with, without;
  const auto tensors_of = [](const std::string& folder) {
    const auto checkpoint = HfCheckpoint::open(folder);
    EXPECT_TRUE(checkpoint) << checkpoint.error().message();
    std::string names;
    for (const CheckpointTensor& tensor : (*checkpoint)->tensors()) names += tensor.name + " ";
    return names;
  };
  const std::string left =
      tensors_of(changed_folder(with, {{"num_hidden_layers", 2}, {"num_nextn_predict_layers", 1}}));
  EXPECT_THAT(left, HasSubstr("blk.1.attn_k_b.weight"));
  EXPECT_THAT(left, ::testing::Not(HasSubstr("blk.2.")));
  // Without such a layer the third would be a tensor too many.
  EXPECT_THAT(tensors_of(changed_folder(
                  without, {{"num_hidden_layers", 2}, {"num_nextn_predict_layers", 0}})),
              HasSubstr("blk.2."));
}

TEST(LatentAttention, takes_yarns_scaling_from_either_spelling) {
  const json yarn = {{"rope_type", "yarn"},
                     {"factor", 40.0},
                     {"original_max_position_embeddings", 64},
                     {"mscale", 1.0},
                     {"mscale_all_dim", 0.5}};
  json older = yarn;
  older.erase("rope_type");
  older["type"] = "yarn";
  for (const json& changes : {json{{"rope_parameters", yarn}},
                              json{{"rope_parameters", nullptr}, {"rope_scaling", older}}}) {
    const ScratchFolder scratch;
    const auto checkpoint = HfCheckpoint::open(changed_folder(scratch, changes));
    ASSERT_TRUE(checkpoint) << checkpoint.error().message();
    const auto number = [&](std::string_view key) {
      const auto value = (*checkpoint)->metadata(key);
      return value ? std::get<double>(*value) : NAN;
    };
    EXPECT_NEAR(number("deepseek2.rope.scaling.yarn_log_multiplier"), 0.05, 1e-9);
    EXPECT_NEAR(number("deepseek2.rope.scaling.attn_factor"),
                (1 + 0.1 * std::log(40.0)) / (1 + 0.05 * std::log(40.0)), 1e-9);
  }
}

}  // namespace
}  // namespace dunlin
