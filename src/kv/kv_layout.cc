#include "kv/kv_layout.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/check.h"
#include "kernels/page_bounds.h"

namespace dunlin {

KvLayout KvLayout::make(const std::vector<int>& window_of_layer, int num_kv_heads, int head_dim_k,
                        int head_dim_v, KvFormats formats) {
  DUNLIN_CHECK(!window_of_layer.empty(), "a model has layers");
  DUNLIN_CHECK(num_kv_heads > 0 && head_dim_k > 0 && head_dim_v > 0, "head sizes are positive");
  KvLayout layout;
  layout.num_kv_heads = num_kv_heads;
  layout.head_dim_k = head_dim_k;
  layout.head_dim_v = head_dim_v;
  layout.formats = formats;

  // A kind is a window size; 0 (full attention) sorts first.
  std::map<int, std::vector<int>> layers_of_kind;
  for (std::size_t i = 0; i < window_of_layer.size(); ++i) {
    DUNLIN_CHECK(window_of_layer[i] >= 0, "a window is a count of tokens");
    layers_of_kind[window_of_layer[i]].push_back(static_cast<int>(i));
  }
  std::size_t layers_per_block = 0;
  for (const auto& [window, layers] : layers_of_kind)
    layers_per_block = std::gcd(layers_per_block, layers.size());
  layout.layers_per_block = static_cast<int>(layers_per_block);

  for (const auto& [window, layers] : layers_of_kind) {
    for (std::size_t begin = 0; begin < layers.size(); begin += layers_per_block) {
      const auto first = layers.begin() + static_cast<std::ptrdiff_t>(begin);
      KvGroup group;
      group.kind = window == 0 ? KvKind::kFull : KvKind::kSlidingWindow;
      group.window = window;
      group.layers.assign(first, first + layout.layers_per_block);
      layout.groups.push_back(std::move(group));
    }
  }
  layout.places.resize(window_of_layer.size());
  for (std::size_t g = 0; g < layout.groups.size(); ++g) {
    const std::vector<int>& layers = layout.groups[g].layers;
    for (std::size_t i = 0; i < layers.size(); ++i)
      layout.places[static_cast<std::size_t>(layers[i])] = {static_cast<int>(g),
                                                            static_cast<int>(i)};
  }
  return layout;
}

KvPart KvLayout::key_part() const {
  return dunlin::key_part(formats.k, num_kv_heads, head_dim_k, values_in_keys ? head_dim_v : 0);
}

KvPart KvLayout::value_part() const {
  return dunlin::value_part(formats.v, num_kv_heads, head_dim_v);
}

std::int64_t KvLayout::layer_key_bytes_per_token() const {
  return key_part().block_bytes / kBlockSize;
}

std::int64_t KvLayout::layer_value_bytes_per_token() const {
  return values_in_keys ? 0 : value_part().block_bytes / kBlockSize;
}

std::int64_t KvLayout::layer_bytes_per_token() const {
  return layer_key_bytes_per_token() + layer_value_bytes_per_token();
}

std::int64_t KvLayout::block_bytes() const {
  return kBlockSize * layers_per_block * layer_bytes_per_token();
}

std::int64_t KvLayout::block_bounds_bytes() const {
  constexpr std::int64_t kHalf = 2;
  return layers_per_block * num_kv_heads * PageBounds::stride(head_dim_k) * kHalf;
}

int KvLayout::num_full_layers() const {
  int num_layers = 0;
  for (const KvGroup& group : groups) num_layers += group.window == 0 ? layers_per_block : 0;
  return num_layers;
}

std::int64_t KvLayout::block_votes_bytes() const {
  return std::int64_t{layers_per_block} * num_kv_heads * kBlockSize * std::int64_t{sizeof(float)};
}

std::int64_t KvLayout::blocks_for(std::int64_t num_tokens) const {
  if (num_tokens <= 0) return 0;
  std::int64_t total = 0;
  for (const KvGroup& group : groups) {
    // The last token's query sees positions first .. num_tokens - 1.
    const std::int64_t first =
        group.window == 0 ? 0 : std::max<std::int64_t>(0, num_tokens - group.window);
    total += (num_tokens - 1) / kBlockSize - first / kBlockSize + 1;
  }
  return total;
}

std::int64_t KvLayout::bytes_per_token() const {
  return static_cast<std::int64_t>(places.size()) * layer_bytes_per_token();
}

}  // namespace dunlin
