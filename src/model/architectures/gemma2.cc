// Gemma 2: norms around both halves of a layer, soft caps on scores and logits, every other layer
// sees a window. Gemma Team, "Gemma 2: Improving open language models at a practical size", 2024.
#include <array>
#include <cmath>

#include "model/hf_transforms.h"
#include "model/layer_patterns.h"
#include "model/registry.h"

namespace dunlin {
namespace {

// Gemma 2 27B scales its scores by the hidden size per head instead of the head size. GGUF files
// have no key for that; the number of layers tells it from the others.
constexpr int kLayersOf27B = 46;
constexpr int kPeriod = 2;

void configure(Hparams& hparams, ModelConfig& config) {
  config.activation = Activation::kGeluTanh;
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden_size));
  config.post_norms = true;
  config.attention_softcap = hparams.number("attn_logit_softcapping", 50.0f);
  config.logit_softcap = hparams.number("final_logit_softcapping", 30.0f);
  if (config.num_layers() == kLayersOf27B && !hparams.has("attention.scale")) {
    config.attention_scale = 1.0f / std::sqrt(static_cast<float>(config.hidden_size) /
                                              static_cast<float>(config.num_heads));
  }
  set_windows(hparams, config, kPeriod);
}

void import(HfImport& import) {
  const HfConfig& config = import.config();
  import.set_number("attention.scale", 1.0 / std::sqrt(config.number("query_pre_attn_scalar")));
  import.set_number("attn_logit_softcapping", config.number("attn_logit_softcapping", 0.0));
  import.set_number("final_logit_softcapping", config.number("final_logit_softcapping", 0.0));
  import_window_pattern(import, kPeriod);
}

// Norm weights are stored as what is added to 1.
constexpr HfTensorName kHfTensors[] = {
    {"output_norm", "norm", plus_one},
    {"attn_norm", "input_layernorm", plus_one},
    {"post_attention_norm", "post_attention_layernorm", plus_one},
    {"ffn_norm", "pre_feedforward_layernorm", plus_one},
    {"post_ffw_norm", "post_feedforward_layernorm", plus_one},
};

constexpr SupportedWords kHfWords[] = {{"hidden_activation", "gelu_pytorch_tanh"}};
constexpr std::array<std::string_view, 1> kHfClasses = {"Gemma2ForCausalLM"};

}  // namespace

const Architecture& gemma2_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "gemma2",
      .hf_classes = kHfClasses,
      .configure = configure,
      .import = import,
      .hf_tensors = kHfTensors,
      .hf_words = kHfWords,
      .hf_ties_head_by_default = true,
  };
  return kArchitecture;
}

}  // namespace dunlin
