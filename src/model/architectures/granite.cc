// Granite 3, dense: Llama's layers with a scale for embeddings, scores, residuals and logits.
#include <array>

#include "model/hf_import.h"
#include "model/registry.h"

namespace dunlin {
namespace {

void configure(Hparams& hparams, ModelConfig& config) {
  config.gguf_interleaves_qk = true;
  config.embedding_scale = hparams.number("embedding_scale", 1.0f);
  config.residual_scale = hparams.number("residual_scale", 1.0f);
  config.logit_scale = 1.0f / hparams.number("logit_scale", 1.0f);
  config.qkv_bias = hparams.has_tensor("blk.0.attn_q.bias");
  config.o_bias = hparams.has_tensor("blk.0.attn_output.bias");
  config.ffn_bias = hparams.has_tensor("blk.0.ffn_gate.bias");
}

void import(HfImport& import) {
  import.copy_number("attention.scale", "attention_multiplier");
  import.copy_number("embedding_scale", "embedding_multiplier");
  import.copy_number("residual_scale", "residual_multiplier");
  import.copy_number("logit_scale", "logits_scaling");
}

constexpr std::array<std::string_view, 1> kHfClasses = {"GraniteForCausalLM"};

}  // namespace

const Architecture& granite_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "granite",
      .hf_classes = kHfClasses,
      .configure = configure,
      .import = import,
      .hf_tensors = {},
      .knows_windows = false,
  };
  return kArchitecture;
}

}  // namespace dunlin
