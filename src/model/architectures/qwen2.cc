// Qwen 2 and 2.5, dense: Llama's layers with biases on Q, K and V.
#include <array>

#include "model/layer_patterns.h"
#include "model/registry.h"

namespace dunlin {
namespace {

void configure(Hparams& hparams, ModelConfig& config) {
  config.qkv_bias = true;
  set_windows(hparams, config, 0);
}

void import(HfImport& import) { import_window_pattern(import, 0); }

constexpr std::array<std::string_view, 1> kHfClasses = {"Qwen2ForCausalLM"};

}  // namespace

const Architecture& qwen2_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "qwen2",
      .hf_classes = kHfClasses,
      .configure = configure,
      .import = import,
      .hf_tensors = {},
  };
  return kArchitecture;
}

}  // namespace dunlin
