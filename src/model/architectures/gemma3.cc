// Gemma 3, text only: five layers that see a window, then one that sees all, each kind with its
// own RoPE; norms around both halves of a layer and on the heads of Q and K.
// Gemma Team, "Gemma 3 Technical Report", 2025.
#include <array>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "base/quote.h"
#include "model/hf_transforms.h"
#include "model/layer_patterns.h"
#include "model/registry.h"

namespace dunlin {
namespace {

// Gemma 3 27B scales its scores by the hidden size per head instead of the head size. GGUF files
// have no key for that; the number of layers tells it from the others.
constexpr int kLayersOf27B = 62;
constexpr int kPeriod = 6;

constexpr int kGlobalRope = 0;
constexpr int kLocalRope = 1;

void configure(Hparams& hparams, ModelConfig& config) {
  config.activation = Activation::kGeluTanh;
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden_size));
  config.qk_norm = QkNorm::kHeads;
  config.post_norms = true;
  config.attention_softcap = hparams.number("attn_logit_softcapping", 0.0f);
  config.logit_softcap = hparams.number("final_logit_softcapping", 0.0f);
  if (config.num_layers() == kLayersOf27B && !hparams.has("attention.scale")) {
    config.attention_scale = 1.0f / std::sqrt(static_cast<float>(config.hidden_size) /
                                              static_cast<float>(config.num_heads));
  }

  // Scaling for long contexts is for the layers that see all; the window's positions stay as they
  // are.
  RopeConfig local;
  local.dims = config.ropes[kGlobalRope].dims;
  local.theta = hparams.number("rope.freq_base_swa", 10000.0f);
  config.ropes.push_back(local);

  set_windows(hparams, config, kPeriod);
  for (LayerConfig& layer : config.layers)
    layer.rope_idx = layer.window == 0 ? kGlobalRope : kLocalRope;
}

void import(HfImport& import) {
  const HfConfig& config = import.config();
  import.set_number("attention.scale", 1.0 / std::sqrt(config.number("query_pre_attn_scalar")));
  import.copy_number("attn_logit_softcapping", "attn_logit_softcapping");
  import.copy_number("final_logit_softcapping", "final_logit_softcapping");
  // Today's spelling has a description for each kind of layer.
  const HfConfig ropes = config.object("rope_parameters");
  if (ropes.has("full_attention")) {
    const HfConfig global = ropes.object("full_attention");
    import.set_rope(global, global.number("rope_theta"));
    const HfConfig local = ropes.object("sliding_attention");
    import.set_number("rope.freq_base_swa", local.number("rope_theta", 10000.0));
    if (const std::string type = local.word("rope_type", "default"); type != "default") {
      config.refuse(
          StatusCode::kUnimplemented,
          fmt::format(
              "rope_parameters.sliding_attention.rope_type {} is not supported; supported is "
              "default",
              quote_for_message(type)));
    }
  } else {
    import.copy_number("rope.freq_base_swa", "rope_local_base_freq");
  }
  import_window_pattern(import, kPeriod);
}

// Norm weights are stored as what is added to 1.
constexpr HfTensorName kHfTensors[] = {
    {"output_norm", "norm", plus_one},
    {"attn_norm", "input_layernorm", plus_one},
    {"attn_q_norm", "self_attn.q_norm", plus_one},
    {"attn_k_norm", "self_attn.k_norm", plus_one},
    {"post_attention_norm", "post_attention_layernorm", plus_one},
    {"ffn_norm", "pre_feedforward_layernorm", plus_one},
    {"post_ffw_norm", "post_feedforward_layernorm", plus_one},
};

constexpr SupportedWords kHfWords[] = {{"hidden_activation", "gelu_pytorch_tanh"}};
constexpr std::array<std::string_view, 1> kHfClasses = {"Gemma3ForCausalLM"};

}  // namespace

const Architecture& gemma3_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "gemma3",
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
