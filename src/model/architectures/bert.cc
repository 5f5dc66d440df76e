// BERT: an encoder with learned positions and token types, biases everywhere and layer norms of the
// residual itself. Its pooler, a head of its first training, is left out.
#include <array>

#include "model/hf_import.h"
#include "model/registry.h"

namespace dunlin {
namespace {

void configure(Hparams& hparams, ModelConfig& config) {
  config.is_encoder = true;
  config.norm = NormType::kLayer;
  config.norm_bias = true;
  config.pre_norms = false;
  config.norms_residual = true;
  config.gated_mlp = false;
  config.activation = Activation::kGeluErf;
  config.qkv_bias = config.o_bias = config.ffn_bias = true;
  config.learned_positions = true;
  const auto types = hparams.checkpoint().find("token_types.weight");
  config.num_token_types = types ? static_cast<int>(types->rows()) : 1;
  for (LayerConfig& layer : config.layers) layer.rope_idx = kNoRope;
}

void import(HfImport& import) {
  import.copy_number("attention.layer_norm_epsilon", "layer_norm_eps");
  import.set("attention.causal", false);
}

constexpr HfTensorName kHfTensors[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"position_embd", "embeddings.position_embeddings"},
    {"token_types", "embeddings.token_type_embeddings"},
    {"token_embd_norm", "embeddings.LayerNorm"},
    {"attn_q", "attention.self.query"},
    {"attn_k", "attention.self.key"},
    {"attn_v", "attention.self.value"},
    {"attn_output", "attention.output.dense"},
    {"attn_output_norm", "attention.output.LayerNorm"},
    {"ffn_up", "intermediate.dense"},
    {"ffn_down", "output.dense"},
    {"layer_output_norm", "output.LayerNorm"},
    // Older names of a norm's weight and bias.
    {"token_embd_norm.weight", "embeddings.LayerNorm.gamma"},
    {"token_embd_norm.bias", "embeddings.LayerNorm.beta"},
    {"attn_output_norm.weight", "attention.output.LayerNorm.gamma"},
    {"attn_output_norm.bias", "attention.output.LayerNorm.beta"},
    {"layer_output_norm.weight", "output.LayerNorm.gamma"},
    {"layer_output_norm.bias", "output.LayerNorm.beta"},
    {"", "embeddings.position_ids"},
    {"", "pooler.dense"},
};
constexpr SupportedWords kHfWords[] = {{"hidden_act", "gelu"},
                                       {"position_embedding_type", "absolute"}};
constexpr SupportedFlag kHfFlags[] = {{"is_decoder", false}};
constexpr std::array<std::string_view, 1> kHfClasses = {"BertModel"};

}  // namespace

const Architecture& bert_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "bert",
      .hf_classes = kHfClasses,
      .configure = configure,
      .import = import,
      .hf_tensors = kHfTensors,
      .hf_words = kHfWords,
      .hf_flags = kHfFlags,
      .hf_has_head = false,
  };
  return kArchitecture;
}

}  // namespace dunlin
