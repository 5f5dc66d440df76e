// The Llama family: Llama 1 to 3, SmolLM2, Mistral, Mixtral, and the many fine-tunes of them.
#include <array>

#include <fmt/format.h>

#include "model/expert_keys.h"
#include "model/layer_patterns.h"
#include "model/registry.h"

namespace dunlin {
namespace {

void configure(Hparams& hparams, ModelConfig& config) {
  config.gguf_interleaves_qk = true;
  // Some members of the family have biases; the file says which by having the tensors.
  config.qkv_bias = hparams.has_tensor("blk.0.attn_q.bias");
  config.o_bias = hparams.has_tensor("blk.0.attn_output.bias");
  config.ffn_bias = hparams.has_tensor("blk.0.ffn_gate.bias");
  // The order of Q and K rows in GGUF files (tensor/row_order.h) is for heads that rotate wholly.
  if (config.ropes[0].dims < config.head_dim && hparams.checkpoint().interleaves_qk()) {
    hparams.refuse(StatusCode::kUnimplemented,
                   fmt::format("llama.rope.dimension_count is {}, below the head size {}, which is "
                               "not supported yet",
                               config.ropes[0].dims, config.head_dim));
  }
  // Mistral 7B v0.1 has one window for every layer.
  set_windows(hparams, config, 0);
  config.moe.normalize = true;
  read_experts(hparams, config);
}

void import(HfImport& import) {
  import_window_pattern(import, 0);
  import_experts(import);
}

constexpr HfTensorName kHfTensors[] = {
    {"ffn_gate_inp", "block_sparse_moe.gate"},
    {"ffn_gate.*", "block_sparse_moe.experts.*.w1"},
    {"ffn_down.*", "block_sparse_moe.experts.*.w2"},
    {"ffn_up.*", "block_sparse_moe.experts.*.w3"},
};

constexpr std::array<std::string_view, 3> kHfClasses = {"LlamaForCausalLM", "MistralForCausalLM",
                                                        "MixtralForCausalLM"};

}  // namespace

const Architecture& llama_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "llama",
      .hf_classes = kHfClasses,
      .configure = configure,
      .import = import,
      .hf_tensors = kHfTensors,
  };
  return kArchitecture;
}

}  // namespace dunlin
