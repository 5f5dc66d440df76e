// DeepSeek-V2 and V3: multi-head latent attention (model/latent_attention.h). DeepSeek-AI,
// "DeepSeek-V2: A strong, economical, and efficient mixture-of-experts language model", 2024, and
// "DeepSeek-V3 technical report", 2024.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "model/expert_keys.h"
#include "model/hf_import.h"
#include "model/hf_transforms.h"
#include "model/registry.h"

namespace dunlin {
namespace {

constexpr int kMaxDim = 1 << 12;

// YaRN's scaling of scores is applied to them and not to what rotates:
// (1 + 0.1 m ln(factor))^2, with rope.scaling.yarn_log_multiplier = 0.1 m.
void set_yarn(Hparams& hparams, ModelConfig& config) {
  RopeConfig& rope = config.ropes[0];
  if (rope.yarn.factor == 0 || !hparams.has("rope.scaling.yarn_log_multiplier")) return;
  const float multiplier = hparams.number("rope.scaling.yarn_log_multiplier");
  const float scale = 1.0f + multiplier * std::log(rope.yarn.factor);
  config.attention_scale *= scale * scale;
  rope.attention_factor = hparams.number("rope.scaling.attn_factor", 1.0f);
}

void configure(Hparams& hparams, ModelConfig& config) {
  LatentAttention& latent = config.latent;
  // llama.cpp wrote the matrices of keys and values as one until May 2025, and no keys "..._mla".
  latent.fused_kv_b = hparams.has_tensor("blk.0.attn_kv_b.weight");
  const std::string_view mla = latent.fused_kv_b ? "" : "_mla";
  latent.q_rank = hparams.count("attention.q_lora_rank", 0, 1 << 20, 0);
  latent.kv_rank = hparams.count("attention.kv_lora_rank", 1, kMaxDim);
  latent.rope_dim = hparams.count("rope.dimension_count", 1, kMaxDim);
  const int query_dim = hparams.count(fmt::format("attention.key_length{}", mla), 1, 2 * kMaxDim);
  latent.nope_dim = query_dim - latent.rope_dim;
  latent.value_dim = hparams.count(fmt::format("attention.value_length{}", mla), 1, kMaxDim);
  config.num_kv_heads = 1;
  config.head_dim = latent.kv_rank + latent.rope_dim;
  config.ropes[0].style = RopeStyle::kInterleaved;
  config.attention_scale =
      hparams.number("attention.scale", 1.0f / std::sqrt(static_cast<float>(query_dim)));
  set_yarn(hparams, config);
  read_experts(hparams, config);
}

void import_yarn(HfImport& import) {
  const HfConfig rope = import.rope();
  if (!rope.has("mscale_all_dim") || rope.word("rope_type", rope.word("type", "")) != "yarn")
    return;
  const double factor = rope.number("factor"), all = rope.number("mscale_all_dim");
  const auto scaling = [&](double mscale) {
    return factor <= 1 ? 1.0 : 1.0 + 0.1 * mscale * std::log(factor);
  };
  import.set_number("rope.scaling.yarn_log_multiplier", 0.1 * all);
  import.set_number("rope.scaling.attn_factor", scaling(rope.number("mscale", 1.0)) / scaling(all));
}

void import(HfImport& import) {
  const HfConfig& config = import.config();
  const auto dim = [&](const char* key) {
    const std::int64_t value = config.integer(key);
    if (value < 1 || value > kMaxDim)
      config.refuse(StatusCode::kInvalidArgument, std::string(key) + " must be from 1 to 4096");
    return std::clamp<std::int64_t>(value, 1, kMaxDim);
  };
  const std::int64_t rope = dim("qk_rope_head_dim"), rank = dim("kv_lora_rank");
  // Written where there is none, too: llama.cpp asks for it unless the model has 26, 27 or 48
  // layers.
  import.set_integer("attention.q_lora_rank", config.integer("q_lora_rank", 0));
  import.set_integer("attention.kv_lora_rank", rank);
  import.set_integer("attention.head_count_kv", 1);
  import.set_integer("attention.key_length", rank + rope);
  import.set_integer("attention.value_length", rank);
  import.set_integer("attention.key_length_mla", dim("qk_nope_head_dim") + rope);
  import.set_integer("attention.value_length_mla", dim("v_head_dim"));
  import.set_integer("rope.dimension_count", rope);
  import_yarn(import);
  import_experts(import);
  // V3's predictor of the token after next.
  if (config.integer("num_nextn_predict_layers", 0) > 0) import.ignore_layers_behind();
}

// kv_b_proj has each head's rows that make its keys of the latent, then those that make its values.
Result<LazyTensor> make_k_b(const HfConfig& config, const LazyTensor& stored) {
  return columns_of_heads(stored, config.integer("num_attention_heads"), 0,
                          config.integer("qk_nope_head_dim"));
}
Result<LazyTensor> make_v_b(const HfConfig& config, const LazyTensor& stored) {
  return rows_of_heads(stored, config.integer("num_attention_heads"),
                       config.integer("qk_nope_head_dim"), config.integer("v_head_dim"));
}

constexpr HfTensorName kHfTensors[] = {
    {"attn_q_a", "self_attn.q_a_proj"},
    {"attn_q_a_norm", "self_attn.q_a_layernorm"},
    {"attn_q_b", "self_attn.q_b_proj"},
    {"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"},
    {"attn_kv_a_norm", "self_attn.kv_a_layernorm"},
    {"attn_k_b", "self_attn.kv_b_proj", make_k_b},
    {"attn_v_b", "self_attn.kv_b_proj", make_v_b},
};

constexpr SupportedWords kHfWords[] = {
    kSilu[0],
    {"topk_method", "greedy group_limited_greedy noaux_tc"},
};
constexpr SupportedFlag kHfFlags[] = {{"rope_interleave", true}};
constexpr std::array<std::string_view, 2> kHfClasses = {"DeepseekV2ForCausalLM",
                                                        "DeepseekV3ForCausalLM"};

}  // namespace

const Architecture& deepseek2_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "deepseek2",
      .hf_classes = kHfClasses,
      .configure = configure,
      .import = import,
      .hf_tensors = kHfTensors,
      .hf_words = kHfWords,
      .hf_flags = kHfFlags,
      .knows_windows = false,
  };
  return kArchitecture;
}

}  // namespace dunlin
