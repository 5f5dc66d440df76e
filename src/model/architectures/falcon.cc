// Falcon: attention and MLP side by side behind layer norms, one for both or one for each; an MLP
// without a gate. Almazrouei et al., "The Falcon series of open language models",
// 2023.
#include <array>

#include <fmt/format.h>

#include "model/hf_import.h"
#include "model/hf_transforms.h"
#include "model/registry.h"

namespace dunlin {
namespace {

void configure(Hparams& hparams, ModelConfig& config) {
  config.norm = NormType::kLayer;
  config.norm_bias = true;
  config.gated_mlp = false;
  config.activation = Activation::kGeluErf;
  config.qkv_bias = hparams.has_tensor("blk.0.attn_qkv.bias");
  config.o_bias = hparams.has_tensor("blk.0.attn_output.bias");
  config.ffn_bias = hparams.has_tensor("blk.0.ffn_up.bias");
  config.parallel = true;
  config.parallel_norms = hparams.has_tensor("blk.0.attn_norm_2.weight");
}

std::int64_t num_heads(const HfConfig& config) {
  return config.integer(spelled(config, "num_attention_heads"));
}

// The first files (RWForCausalLM) tell the newer decoder by n_head_kv.
bool is_newer_decoder(const HfConfig& config) {
  return config.flag("new_decoder_architecture", config.has("n_head_kv"));
}

std::int64_t num_kv_heads(const HfConfig& config) {
  if (is_newer_decoder(config))
    return config.integer(spelled(config, "num_kv_heads"), num_heads(config));
  return config.flag("multi_query", true) ? 1 : num_heads(config);
}

void import(HfImport& import) {
  const HfConfig& config = import.config();
  import.copy_number("attention.layer_norm_epsilon", "layer_norm_epsilon");
  import.set_integer("context_length", config.integer("max_position_embeddings", 2048));
  import.set_integer("attention.head_count_kv", num_kv_heads(config));
  import.set_ffn_size("ffn_hidden_size");
  if (!config.flag("parallel_attn", true) && !is_newer_decoder(config))
    config.refuse(StatusCode::kUnimplemented, "parallel_attn other than true is not supported");
}

// A group is the query heads of one KV head, its key and its value.
Result<LazyTensor> ungrouped(const HfConfig& config, const LazyTensor& stored) {
  const std::int64_t heads = num_heads(config), groups = num_kv_heads(config);
  if (heads < 1 || groups < 1 || heads % groups != 0)
    return invalid(fmt::format("is of {} heads in {} groups", heads, groups));
  const std::int64_t head_dim = config.integer("hidden_size") / heads;
  return qkv_of_groups(stored, groups, heads / groups * head_dim, head_dim);
}

constexpr HfTensorName kHfTensors[] = {
    {"token_embd", "word_embeddings"},
    {"output_norm", "ln_f"},
    {"attn_norm", "ln_mlp"},
    {"attn_norm_2", "ln_attn"},
    {"attn_qkv", "self_attention.query_key_value", ungrouped},
    {"attn_output", "self_attention.dense"},
    {"ffn_up", "mlp.dense_h_to_4h"},
    {"ffn_down", "mlp.dense_4h_to_h"},
    // What RoPE computes from its base.
    {"", "self_attention.maybe_rotary.inv_freq"},
    {"", "self_attention.rotary_emb.inv_freq"},
};
constexpr SupportedWords kHfWords[] = {{"activation", "gelu"}};
constexpr SupportedFlag kHfFlags[] = {{"alibi", false}};
constexpr std::array<std::string_view, 2> kHfClasses = {"FalconForCausalLM", "RWForCausalLM"};

}  // namespace

const Architecture& falcon_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "falcon",
      .hf_classes = kHfClasses,
      .configure = configure,
      .import = import,
      .hf_tensors = kHfTensors,
      .hf_words = kHfWords,
      .hf_flags = kHfFlags,
      .knows_windows = false,
      .hf_ties_head_by_default = true,
  };
  return kArchitecture;
}

}  // namespace dunlin
