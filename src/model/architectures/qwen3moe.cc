// Qwen 3 with experts: Qwen 3's layers, a mixture in the place of the MLP.
#include <array>

#include "model/expert_keys.h"
#include "model/layer_patterns.h"
#include "model/registry.h"

namespace dunlin {
namespace {

void configure(Hparams& hparams, ModelConfig& config) {
  config.qk_norm = QkNorm::kHeads;
  set_windows(hparams, config, 0);
  config.moe.normalize = true;
  read_experts(hparams, config);
}

void import(HfImport& import) {
  import_window_pattern(import, 0);
  import_experts(import);
  // GGUF files leave it out and mean true, config.json leaves it out and means false.
  import.set("expert_weights_norm", import.config().flag("norm_topk_prob", false));
}

constexpr std::array<std::string_view, 1> kHfClasses = {"Qwen3MoeForCausalLM"};

}  // namespace

const Architecture& qwen3moe_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "qwen3moe",
      .hf_classes = kHfClasses,
      .configure = configure,
      .import = import,
      .hf_tensors = {},
  };
  return kArchitecture;
}

}  // namespace dunlin
