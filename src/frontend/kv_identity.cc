#include "frontend/kv_identity.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/sha256.h"
#include "model/single_sequence.h"

namespace dunlin {
namespace {

constexpr int kProbeTokens = 48;

std::string layout_text(const KvLayout& layout) {
  std::string text =
      fmt::format("{} {} {} {} {} {} {}", layout.num_kv_heads, layout.head_dim_k, layout.head_dim_v,
                  kv_format_info(layout.formats.k).name, kv_format_info(layout.formats.v).name,
                  layout.values_in_keys, layout.layers_per_block);
  for (const KvGroup& group : layout.groups)
    text += fmt::format(" / {} {}", group.window, fmt::join(group.layers, ","));
  return text;
}

std::string probe_text(Model& model) {
  std::vector<TokenId> ids;
  const auto vocab_size = static_cast<unsigned>(model.limits().vocab_size);
  const int length = std::min(kProbeTokens, model.limits().context_length);
  for (unsigned i = 0; i < static_cast<unsigned>(length); ++i)
    ids.push_back(static_cast<TokenId>(i * 7919u % vocab_size));
  SingleSequence sequence(model, length);
  const auto logits = sequence.append(ids);
  return {reinterpret_cast<const char*>(logits.data()), logits.size_bytes()};
}

}  // namespace

std::string weights_hash(const Checkpoint& checkpoint) {
  std::vector<CheckpointTensor> tensors = checkpoint.tensors();
  std::sort(tensors.begin(), tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  for (const CheckpointTensor& tensor : tensors) {
    const TensorView& view = tensor.view;
    const std::string head = fmt::format("{} {} {}\n", tensor.name, dtype_info(view.dtype).name,
                                         fmt::join(view.shape, ","));
    XXH3_128bits_update(state.get(), head.data(), head.size());
    std::vector<TensorView> stored = tensor.sources;
    if (view.data != nullptr) stored = {view};
    for (const TensorView& bytes : stored) {
      XXH3_128bits_update(state.get(), bytes.data, static_cast<std::size_t>(bytes.size_bytes()));
      checkpoint.release(bytes);
    }
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

PrefixKey kv_identity(const std::string& weights, Model& model) {
  return sha256(fmt::format("dunlin KV\n{}\n{}\n", weights, layout_text(model.kv_layout())) +
                probe_text(model));
}

}  // namespace dunlin
