// Qwen 3, dense: norms on the heads of Q and K instead of biases.
#include <array>

#include "model/layer_patterns.h"
#include "model/registry.h"

namespace dunlin {
namespace {

void configure(Hparams& hparams, ModelConfig& config) {
  config.qk_norm = QkNorm::kHeads;
  set_windows(hparams, config, 0);
}

void import(HfImport& import) { import_window_pattern(import, 0); }

constexpr std::array<std::string_view, 1> kHfClasses = {"Qwen3ForCausalLM"};

}  // namespace

const Architecture& qwen3_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "qwen3",
      .hf_classes = kHfClasses,
      .configure = configure,
      .import = import,
      .hf_tensors = {},
  };
  return kArchitecture;
}

}  // namespace dunlin
