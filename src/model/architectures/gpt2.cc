// GPT-2: learned positions, layer norms and biases everywhere, an MLP without a gate. Hugging
// Face's checkpoints hold its matrices as [in, out].
#include <array>

#include "model/hf_import.h"
#include "model/hf_transforms.h"
#include "model/registry.h"

namespace dunlin {
namespace {

void configure(Hparams& /*hparams*/, ModelConfig& config) {
  config.norm = NormType::kLayer;
  config.norm_bias = true;
  config.gated_mlp = false;
  config.activation = Activation::kGeluTanh;
  config.qkv_bias = config.o_bias = config.ffn_bias = true;
  config.learned_positions = true;
  for (LayerConfig& layer : config.layers) layer.rope_idx = kNoRope;
}

void import(HfImport& import) {
  import.copy_number("attention.layer_norm_epsilon", "layer_norm_epsilon");
  import.set_ffn_size("n_inner");
}

Result<LazyTensor> turned(const HfConfig& /*config*/, const LazyTensor& stored) {
  return transposed(stored);
}

constexpr HfTensorName kHfTensors[] = {
    {"token_embd", "wte"},
    {"position_embd", "wpe"},
    {"output_norm", "ln_f"},
    {"attn_norm", "ln_1"},
    {"attn_qkv.weight", "attn.c_attn.weight", turned},
    {"attn_qkv.bias", "attn.c_attn.bias"},
    {"attn_output.weight", "attn.c_proj.weight", turned},
    {"attn_output.bias", "attn.c_proj.bias"},
    {"ffn_norm", "ln_2"},
    {"ffn_up.weight", "mlp.c_fc.weight", turned},
    {"ffn_up.bias", "mlp.c_fc.bias"},
    {"ffn_down.weight", "mlp.c_proj.weight", turned},
    {"ffn_down.bias", "mlp.c_proj.bias"},
    // The causal mask, which older checkpoints carry.
    {"", "attn.bias"},
    {"", "attn.masked_bias"},
};
constexpr SupportedWords kHfWords[] = {{"activation_function", "gelu_new gelu_pytorch_tanh"}};
constexpr SupportedFlag kHfFlags[] = {{"scale_attn_weights", true},
                                      {"scale_attn_by_inverse_layer_idx", false}};
constexpr std::array<std::string_view, 1> kHfClasses = {"GPT2LMHeadModel"};

}  // namespace

const Architecture& gpt2_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "gpt2",
      .hf_classes = kHfClasses,
      .configure = configure,
      .import = import,
      .hf_tensors = kHfTensors,
      .hf_words = kHfWords,
      .hf_flags = kHfFlags,
      .knows_windows = false,
      .hf_ties_head_by_default = true,
  };
  return kArchitecture;
}

}  // namespace dunlin
