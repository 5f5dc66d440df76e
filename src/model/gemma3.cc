// Gemma 3, text only: five layers that see a window, then one that sees all, each kind with its
// own RoPE; norms around both halves of a layer and on the heads of Q and K.
// Gemma Team, "Gemma 3 Technical Report", 2025.
#include <cmath>

#include "model/registry.h"

namespace dunlin {
namespace {

// Gemma 3 27B scales its scores by the hidden size per head instead of the head size. The file
// has no key for that; the number of layers tells it from the others.
constexpr int kLayersOf27B = 62;

constexpr int kGlobalRope = 0;
constexpr int kLocalRope = 1;

}  // namespace

void configure_gemma3(GgufHparams& hparams, ModelConfig& config) {
  config.activation = Activation::kGeluTanh;
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden_size));
  config.qk_norm = true;
  config.post_norms = true;
  config.logit_softcap = hparams.number("final_logit_softcapping", 0.0f);
  if (config.num_layers() == kLayersOf27B) {
    config.attention_scale = 1.0f / std::sqrt(static_cast<float>(config.hidden_size) /
                                              static_cast<float>(config.num_heads));
  }

  // Scaling for long contexts is for the layers that see all; the window's positions stay as they
  // are.
  RopeConfig local = config.ropes[kGlobalRope];
  local.theta = hparams.number("rope.freq_base_swa", 10000.0f);
  local.position_divisor = 1.0f;
  local.has_factors = false;
  config.ropes.push_back(local);

  const int window = hparams.count("attention.sliding_window", 1, 1 << 28);
  const int period = hparams.count("attention.sliding_window_pattern", 1, 1 << 12, 6);
  for (int i = 0; i < config.num_layers(); ++i) {
    LayerConfig& layer = config.layers[static_cast<std::size_t>(i)];
    const bool sees_all = (i + 1) % period == 0;
    layer.window = sees_all ? 0 : window;
    layer.rope_idx = sees_all ? kGlobalRope : kLocalRope;
  }
}

}  // namespace dunlin
