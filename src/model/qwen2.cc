// Qwen 2 and 2.5, dense: Llama's layers with biases on Q, K and V.
#include "model/registry.h"

namespace dunlin {

void configure_qwen2(GgufHparams& /*hparams*/, ModelConfig& config) {
  config.activation = Activation::kSilu;
  config.qkv_bias = true;
}

}  // namespace dunlin
