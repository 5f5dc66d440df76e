// Qwen 1.5 and 2 with experts: Qwen 2's layers, a mixture in the place of the MLP, and an expert
// that all tokens take, through a gate of its own.
#include <array>

#include "model/expert_keys.h"
#include "model/layer_patterns.h"
#include "model/registry.h"

namespace dunlin {
namespace {

void configure(Hparams& hparams, ModelConfig& config) {
  config.qkv_bias = true;
  set_windows(hparams, config, 0);
  read_experts(hparams, config);
  config.moe.shared_gate = config.moe.shared_ffn_size > 0;
}

void import(HfImport& import) {
  import_window_pattern(import, 0);
  import_experts(import);
}

constexpr SupportedFlag kHfFlags[] = {{"qkv_bias", true}};
constexpr std::array<std::string_view, 1> kHfClasses = {"Qwen2MoeForCausalLM"};

}  // namespace

const Architecture& qwen2moe_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "qwen2moe",
      .hf_classes = kHfClasses,
      .configure = configure,
      .import = import,
      .hf_tensors = {},
      .hf_flags = kHfFlags,
  };
  return kArchitecture;
}

}  // namespace dunlin
