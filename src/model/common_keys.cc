#include "model/common_keys.h"

namespace dunlin {
namespace {

constexpr double kMostTurn = 1;  // radians over the context

// The dimension of a pair's first and second number.
struct Pair {
  std::size_t first, second;
};
Pair pair_of(RopeStyle style, std::size_t j, std::size_t num_pairs) {
  if (style == RopeStyle::kRotateHalf) return {j, j + num_pairs};
  return {2 * j, 2 * j + 1};
}

}  // namespace

std::vector<float> common_keys(const ModelConfig& config, const LayerWeights& layer,
                               const RopeFrequencies* rope, RopeStyle style) {
  if (layer.k.bias.empty() || !layer.k_norm.weight.empty() || config.is_latent()) return {};
  if (config.attention_sinks || config.attention_softcap != 0) return {};
  std::vector<float> common = layer.k.bias;
  if (rope == nullptr) return common;
  const std::size_t num_pairs = rope->inv_freq.size();
  const auto head_dim = static_cast<std::size_t>(config.head_dim);
  for (std::size_t j = 0; j < num_pairs; ++j) {
    const bool is_slow = rope->inv_freq[j] * config.context_length <= kMostTurn;
    const auto factor = is_slow ? static_cast<float>(rope->attention_factor) : 0.0f;
    const auto [first, second] = pair_of(style, j, num_pairs);
    for (std::size_t head = 0; head < common.size(); head += head_dim) {
      common[head + first] *= factor;
      common[head + second] *= factor;
    }
  }
  return common;
}

}  // namespace dunlin
