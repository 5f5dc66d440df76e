// SmolLM3: Llama's layers, of which every fourth has no RoPE.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "model/layer_patterns.h"
#include "model/registry.h"

namespace dunlin {
namespace {

constexpr int kPeriod = 4;
constexpr std::int64_t kMaxLayers = 1 << 12;  // more are refused

void configure(Hparams& hparams, ModelConfig& config) {
  config.gguf_interleaves_qk = true;
  const std::vector<std::int64_t> with_rope = hparams.integers("rope.layers");
  if (!with_rope.empty() && with_rope.size() != config.layers.size()) {
    hparams.refuse(StatusCode::kInvalidArgument,
                   fmt::format("smollm3.rope.layers has {} entries for {} layers", with_rope.size(),
                               config.layers.size()));
    return;
  }
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const bool rotates = with_rope.empty() ? (i + 1) % kPeriod != 0 : with_rope[i] != 0;
    if (!rotates) config.layers[i].rope_idx = kNoRope;
  }
  set_windows(hparams, config, 0);
}

// no_rope_layers has 1 for a layer with RoPE.
void import(HfImport& import) {
  const HfConfig& config = import.config();
  std::vector<std::int64_t> with_rope = config.integers("no_rope_layers");
  if (with_rope.empty() && config.has("no_rope_layer_interval")) {
    const std::int64_t interval = config.integer("no_rope_layer_interval");
    const std::int64_t num_layers = std::min(config.integer("num_hidden_layers"), kMaxLayers);
    if (interval < 1)
      config.refuse(StatusCode::kInvalidArgument, "no_rope_layer_interval is below 1");
    for (std::int64_t i = 1; i <= num_layers && interval > 0; ++i)
      with_rope.push_back(i % interval != 0 ? 1 : 0);
  }
  if (!with_rope.empty()) import.set("rope.layers", std::move(with_rope));
  import_window_pattern(import, 0);
}

constexpr std::array<std::string_view, 1> kHfClasses = {"SmolLM3ForCausalLM"};

}  // namespace

const Architecture& smollm3_architecture() {
  static constexpr Architecture kArchitecture = {
      .name = "smollm3",
      .hf_classes = kHfClasses,
      .configure = configure,
      .import = import,
      .hf_tensors = {},
      .hf_ties_head_by_default = true,
  };
  return kArchitecture;
}

}  // namespace dunlin
