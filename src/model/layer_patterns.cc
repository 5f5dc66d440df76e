#include "model/layer_patterns.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/quote.h"

namespace dunlin {
namespace {

constexpr std::string_view kPattern = "attention.sliding_window_pattern";

bool has_window(std::size_t layer, int period) {
  return period == 0 || (layer + 1) % static_cast<std::size_t>(period) != 0;
}

bool is_array(const Hparams& hparams, const ModelConfig& config) {
  const auto value =
      hparams.checkpoint().metadata(fmt::format("{}.{}", config.architecture, kPattern));
  return value && std::holds_alternative<std::vector<std::int64_t>>(*value);
}

// Older files of Qwen's say only how many of the first layers see all.
std::vector<std::string> layer_types(const HfConfig& config) {
  std::vector<std::string> types = config.words("layer_types");
  if (!types.empty() || !config.has("max_window_layers") ||
      !config.flag("use_sliding_window", true))
    return types;
  const std::int64_t first = config.integer("max_window_layers");
  constexpr std::int64_t kMaxLayers = 1 << 12;  // more are refused
  const std::int64_t count = std::min(config.integer("num_hidden_layers"), kMaxLayers);
  for (std::int64_t i = 0; i < count; ++i)
    types.emplace_back(i < first ? "full_attention" : "sliding_attention");
  return types;
}

}  // namespace

void set_windows(Hparams& hparams, ModelConfig& config, int default_period) {
  const int window = hparams.count("attention.sliding_window", 0, 1 << 28, 0);
  if (window == 0) return;
  if (is_array(hparams, config)) {
    const std::vector<std::int64_t> pattern = hparams.integers(kPattern);
    if (pattern.size() != config.layers.size()) {
      hparams.refuse(StatusCode::kInvalidArgument,
                     fmt::format("{}.{} has {} entries for {} layers", config.architecture,
                                 kPattern, pattern.size(), config.layers.size()));
      return;
    }
    for (std::size_t i = 0; i < pattern.size(); ++i)
      config.layers[i].window = pattern[i] != 0 ? window : 0;
    return;
  }
  const int period = hparams.count(kPattern, 1, 1 << 12, default_period);
  for (std::size_t i = 0; i < config.layers.size(); ++i)
    config.layers[i].window = has_window(i, period) ? window : 0;
}

void import_window_pattern(HfImport& import, int default_period) {
  const std::vector<std::string> types = layer_types(import.config());
  // Older files of Gemma 3 and Cohere 2 have a period instead.
  if (types.empty() && default_period > 1) {
    for (const char* key : {"_sliding_window_pattern", "sliding_window_pattern"}) {
      if (import.config().integer(key, default_period) != default_period)
        import.copy_integer(kPattern, key);
    }
  }
  std::vector<std::int64_t> pattern;
  bool is_default = true;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] != "sliding_attention" && types[i] != "full_attention") {
      import.config().refuse(StatusCode::kUnimplemented,
                             fmt::format("layer_types has {}; supported are full_attention and "
                                         "sliding_attention",
                                         quote_for_message(types[i])));
      return;
    }
    pattern.push_back(types[i] == "sliding_attention" ? 1 : 0);
    is_default = is_default && (pattern[i] != 0) == has_window(i, default_period);
  }
  if (!is_default) import.set(kPattern, std::move(pattern));
}

}  // namespace dunlin
