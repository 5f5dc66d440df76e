// GLM-4 (0414): norms around both halves of a layer, half of each head rotates in neighbouring
// pairs.
#include <array>

#include "model/registry.h"

namespace dunlin {
namespace {

void configure(Hparams& hparams, ModelConfig& config) {
  config.post_norms = true;
  config.ropes[0].style = RopeStyle::kInterleaved;
  config.qkv_bias = hparams.has_tensor("blk.0.attn_q.bias");
}

constexpr HfTensorName kHfTensors[] = {
    {"post_attention_norm", "post_self_attn_layernorm"},
    {"post_ffw_norm", "post_mlp_layernorm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_up", "mlp.gate_up_proj"},
};
constexpr std::array<std::string_view, 1> kHfClasses = {"Glm4ForCausalLM"};

}  // namespace

const Architecture& glm4_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "glm4",
      .hf_classes = kHfClasses,
      .configure = configure,
      .import = nullptr,
      .hf_tensors = kHfTensors,
      .knows_windows = false,
  };
  return kArchitecture;
}

}  // namespace dunlin
