// GPT-OSS: experts with biases and a clamped gate, a window in every second layer, and a sink for
// each head, which takes a part of the attention and gives nothing.
// OpenAI, "gpt-oss-120b & gpt-oss-20b Model Card", 2025.
#include <array>

#include "model/expert_keys.h"
#include "model/hf_transforms.h"
#include "model/layer_patterns.h"
#include "model/registry.h"

namespace dunlin {
namespace {

constexpr int kPeriod = 2;

void configure(Hparams& hparams, ModelConfig& config) {
  config.activation = Activation::kClampedSwiglu;
  config.qkv_bias = true;
  config.o_bias = true;
  config.attention_sinks = true;
  config.ffn_norm_is_post_attention = true;
  config.ropes[0].yarn.round_ramp = hparams.flag("rope.scaling.yarn_round_ramp", false);
  set_windows(hparams, config, kPeriod);
  config.moe.scoring = ExpertScoring::kSoftmaxOfChosen;
  config.moe.bias = true;
  read_experts(hparams, config);
}

void import(HfImport& import) {
  const HfConfig& config = import.config();
  import_window_pattern(import, kPeriod);
  import_experts(import);
  import.copy_integer("expert_feed_forward_length", "intermediate_size");
  if (config.number("swiglu_alpha", 1.702) != 1.702 || config.number("swiglu_limit", 7) != 7) {
    config.refuse(StatusCode::kUnimplemented,
                  "swiglu_alpha other than 1.702 and swiglu_limit other than 7 are not supported");
  }
}

// Gate and up are the even and the odd columns of one tensor.
Result<LazyTensor> gate(const HfConfig& /*config*/, const LazyTensor& stored) {
  return transposed_columns(stored, 0, 2);
}
Result<LazyTensor> up(const HfConfig& /*config*/, const LazyTensor& stored) {
  return transposed_columns(stored, 1, 2);
}
Result<LazyTensor> down(const HfConfig& /*config*/, const LazyTensor& stored) {
  return transposed_columns(stored, 0, 1);
}
Result<LazyTensor> gate_bias(const HfConfig& /*config*/, const LazyTensor& stored) {
  return strided_columns(stored, 0, 2);
}
Result<LazyTensor> up_bias(const HfConfig& /*config*/, const LazyTensor& stored) {
  return strided_columns(stored, 1, 2);
}

// In MXFP4 experts are stored as [out, in], with gate and up as the even and the odd rows.
Result<LazyTensor> gate_rows(const HfConfig& /*config*/, const LazyTensor& stored) {
  return strided_rows(stored, 0, 2);
}
Result<LazyTensor> up_rows(const HfConfig& /*config*/, const LazyTensor& stored) {
  return strided_rows(stored, 1, 2);
}

constexpr HfTensorName kHfTensors[] = {
    {"attn_sinks.weight", "self_attn.sinks"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_gate_inp", "mlp.router"},
    {"ffn_gate_exps.weight", "mlp.experts.gate_up_proj", gate},
    {"ffn_up_exps.weight", "mlp.experts.gate_up_proj", up},
    {"ffn_down_exps.weight", "mlp.experts.down_proj", down},
    {"ffn_gate_exps.weight", "mlp.experts.gate_up_proj_blocks", gate_rows},
    {"ffn_up_exps.weight", "mlp.experts.gate_up_proj_blocks", up_rows},
    {"ffn_down_exps.weight", "mlp.experts.down_proj_blocks"},
    {"ffn_gate_exps.bias", "mlp.experts.gate_up_proj_bias", gate_bias},
    {"ffn_up_exps.bias", "mlp.experts.gate_up_proj_bias", up_bias},
    {"ffn_down_exps.bias", "mlp.experts.down_proj_bias"},
};
constexpr std::array<std::string_view, 1> kHfClasses = {"GptOssForCausalLM"};

}  // namespace

const Architecture& gpt_oss_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "gpt-oss",
      .hf_classes = kHfClasses,
      .configure = configure,
      .import = import,
      .hf_tensors = kHfTensors,
  };
  return kArchitecture;
}

}  // namespace dunlin
