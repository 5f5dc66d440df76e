// Phi-3 and Phi-4: Llama's layers with Q, K and V in one tensor, gate and up in another.
#include <array>

#include "model/layer_patterns.h"
#include "model/registry.h"

namespace dunlin {
namespace {

void configure(Hparams& hparams, ModelConfig& config) { set_windows(hparams, config, 0); }

constexpr HfTensorName kHfTensors[] = {
    {"attn_qkv", "self_attn.qkv_proj"},
    {"ffn_up", "mlp.gate_up_proj"},
};
constexpr std::array<std::string_view, 1> kHfClasses = {"Phi3ForCausalLM"};

}  // namespace

const Architecture& phi3_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "phi3",
      .hf_classes = kHfClasses,
      .configure = configure,
      .import = nullptr,
      .hf_tensors = kHfTensors,
  };
  return kArchitecture;
}

}  // namespace dunlin
