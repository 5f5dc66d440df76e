// StarCoder 2: layer norms and biases everywhere, an MLP without a gate.
#include <array>

#include "model/layer_patterns.h"
#include "model/registry.h"

namespace dunlin {
namespace {

void configure(Hparams& hparams, ModelConfig& config) {
  config.norm = NormType::kLayer;
  config.norm_bias = true;
  config.gated_mlp = false;
  config.activation = Activation::kGeluTanh;
  config.qkv_bias = hparams.has_tensor("blk.0.attn_q.bias");
  config.o_bias = hparams.has_tensor("blk.0.attn_output.bias");
  config.ffn_bias = hparams.has_tensor("blk.0.ffn_up.bias");
  set_windows(hparams, config, 0);
}

void import(HfImport& import) {
  import.copy_number("attention.layer_norm_epsilon", "norm_epsilon");
}

constexpr HfTensorName kHfTensors[] = {
    {"ffn_up", "mlp.c_fc"},
    {"ffn_down", "mlp.c_proj"},
};
constexpr SupportedWords kHfWords[] = {{"hidden_act", "gelu_pytorch_tanh gelu_new"}};
constexpr std::array<std::string_view, 1> kHfClasses = {"Starcoder2ForCausalLM"};

}  // namespace

const Architecture& starcoder2_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "starcoder2",
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
