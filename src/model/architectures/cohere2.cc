// Command R7B (Cohere 2): attention and MLP side by side behind one layer norm, three layers that
// see a window and rotate, then one that sees all and knows no positions.
#include <array>

#include "model/layer_patterns.h"
#include "model/registry.h"

namespace dunlin {
namespace {

constexpr int kPeriod = 4;

void configure(Hparams& hparams, ModelConfig& config) {
  config.norm = NormType::kLayer;
  config.parallel = true;
  config.ropes[0].style = RopeStyle::kInterleaved;
  config.logit_scale = hparams.number("logit_scale");
  config.qkv_bias = hparams.has_tensor("blk.0.attn_q.bias");
  config.o_bias = hparams.has_tensor("blk.0.attn_output.bias");
  set_windows(hparams, config, kPeriod);
  for (LayerConfig& layer : config.layers)
    if (layer.window == 0) layer.rope_idx = kNoRope;
}

void import(HfImport& import) {
  import.copy_number("attention.layer_norm_epsilon", "layer_norm_eps");
  import.copy_number("logit_scale", "logit_scale");
  import_window_pattern(import, kPeriod);
}

constexpr std::array<std::string_view, 1> kHfClasses = {"Cohere2ForCausalLM"};

}  // namespace

const Architecture& cohere2_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "cohere2",
      .hf_classes = kHfClasses,
      .configure = configure,
      .import = import,
      .hf_tensors = {},
      .hf_ties_head_by_default = true,
  };
  return kArchitecture;
}

}  // namespace dunlin
