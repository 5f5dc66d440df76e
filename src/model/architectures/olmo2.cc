// OLMo 2: no norms in front of attention and MLP but behind them, and norms over all of Q and of K.
// OLMo Team, "2 OLMo 2 Furious", 2025.
#include <array>

#include "model/registry.h"

namespace dunlin {
namespace {

void configure(Hparams& /*hparams*/, ModelConfig& config) {
  config.pre_norms = false;
  config.post_norms = true;
  config.qk_norm = QkNorm::kWhole;
}

constexpr HfTensorName kHfTensors[] = {
    {"post_attention_norm", "post_attention_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
};
constexpr std::array<std::string_view, 1> kHfClasses = {"Olmo2ForCausalLM"};

}  // namespace

const Architecture& olmo2_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "olmo2",
      .hf_classes = kHfClasses,
      .configure = configure,
      .import = nullptr,
      .hf_tensors = kHfTensors,
      .knows_windows = false,
  };
  return kArchitecture;
}

}  // namespace dunlin
