// The Llama family: Llama 1 to 3, SmolLM2, Mistral, and the many fine-tunes of them.
#include <fmt/format.h>

#include "model/registry.h"

namespace dunlin {

void configure_llama(GgufHparams& hparams, ModelConfig& config) {
  config.activation = Activation::kSilu;
  // Some members of the family have biases; the file says which by having the tensors.
  config.qkv_bias = hparams.has_tensor("blk.0.attn_q.bias");
  config.o_bias = hparams.has_tensor("blk.0.attn_output.bias");
  config.ffn_bias = hparams.has_tensor("blk.0.ffn_gate.bias");
  // The order of Q and K rows in these files (tensor/row_order.h) is for heads that rotate wholly.
  if (config.ropes[0].dims < config.head_dim) {
    hparams.refuse(StatusCode::kUnimplemented,
                   fmt::format("llama.rope.dimension_count is {}, below the head size {}, which is "
                               "not supported yet",
                               config.ropes[0].dims, config.head_dim));
  }
  // Mistral 7B v0.1 has one window for every layer.
  const int window = hparams.count("attention.sliding_window", 0, 1 << 28, 0);
  for (LayerConfig& layer : config.layers) layer.window = window;
}

}  // namespace dunlin
