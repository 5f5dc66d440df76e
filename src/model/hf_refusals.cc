#include "model/hf_refusals.h"

#include <algorithm>
#include <span>
#include <string>

#include <fmt/format.h>

#include "base/quote.h"
#include "model/expert_keys.h"

namespace dunlin {
namespace {

// Whether a list of words, parted by spaces, has this one.
bool lists(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

// What no architecture computes.
constexpr SupportedFlag kFlags[] = {{"use_bidirectional_attention", false}};
constexpr std::string_view kMissing[] = {"clip_qkv", "attention_chunk_size"};

struct BiasRow {
  std::string_view key;
  std::span<const std::string_view> tensors;  // any of them
};
constexpr std::string_view kAttentionBiases[] = {"blk.0.attn_q.bias", "blk.0.attn_qkv.bias",
                                                 "blk.0.attn_q_a.bias", "blk.0.attn_kv_a_mqa.bias"};
constexpr std::string_view kMlpBiases[] = {"blk.0.ffn_up.bias", "blk.0.ffn_up_exps.bias"};
constexpr BiasRow kBiases[] = {{"attention_bias", kAttentionBiases},
                               {"mlp_bias", kMlpBiases},
                               // Of StarCoder 2 and Falcon, for both.
                               {"use_bias", kAttentionBiases},
                               {"use_bias", kMlpBiases},
                               {"bias", kAttentionBiases},
                               {"bias", kMlpBiases}};

void refuse(const HfConfig& config, std::string message) {
  config.refuse(StatusCode::kUnimplemented, std::move(message));
}

void refuse_layer_types(const HfConfig& config, const Architecture& architecture) {
  const std::vector<std::string> types = config.words("layer_types");
  if (types.empty()) return;
  const std::int64_t num_layers = config.integer("num_hidden_layers");
  if (std::int64_t(types.size()) != num_layers) {
    config.refuse(StatusCode::kInvalidArgument,
                  fmt::format("layer_types has {} entries, but num_hidden_layers is {}",
                              types.size(), num_layers));
  }
  if (architecture.knows_windows) return;
  for (const std::string& type : types) {
    if (type != "full_attention") {
      refuse(config, fmt::format("layer_types has {}; architecture {} knows full_attention only",
                                 quote_for_message(type), architecture.name));
    }
  }
}

void refuse_missing_biases(const HfConfig& config,
                           FunctionRef<bool(std::string_view name)> has_tensor) {
  for (const BiasRow& row : kBiases) {
    if (!config.flag(row.key, false)) continue;
    if (std::none_of(row.tensors.begin(), row.tensors.end(), has_tensor)) {
      config.refuse(StatusCode::kInvalidArgument,
                    fmt::format("{} is true, but the weights have no such biases", row.key));
    }
  }
}

void refuse_other_experts(const HfConfig& config,
                          FunctionRef<bool(std::string_view name)> has_tensor) {
  constexpr std::int64_t kMaxLayers = 1 << 12;  // more are refused by their own name
  const std::int64_t num_layers = std::min(config.integer("num_hidden_layers", 0), kMaxLayers);
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    const bool has_experts = hf_layer_has_experts(config, layer);
    if (has_tensor(fmt::format("blk.{}.ffn_gate_inp.weight", layer)) == has_experts) continue;
    constexpr std::string_view kKeys =
        "number of experts, first_k_dense_replace, moe_layer_freq, decoder_sparse_step, "
        "mlp_only_layers";
    config.refuse(
        StatusCode::kInvalidArgument,
        fmt::format("layer {} {} experts ({}), but the weights have {} router for it", layer,
                    has_experts ? "has" : "has no", kKeys, has_experts ? "no" : "a"));
    return;
  }
}

}  // namespace

void refuse_unsupported(const HfConfig& config, const Architecture& architecture) {
  for (const SupportedWords& supported : architecture.hf_words) {
    if (!config.has(supported.key)) continue;
    const std::string word = config.word(supported.key);
    if (!lists(supported.words, word)) {
      refuse(config,
             fmt::format("{} {} is not supported in architecture {}; supported: {}", supported.key,
                         quote_for_message(word), architecture.name, supported.words));
    }
  }
  for (const auto& flags : {std::span<const SupportedFlag>(kFlags), architecture.hf_flags}) {
    for (const SupportedFlag& flag : flags) {
      if (config.flag(flag.key, flag.value) != flag.value)
        refuse(config, fmt::format("{} {} is not supported", flag.key, !flag.value));
    }
  }
  for (const std::string_view key : kMissing) {
    if (config.has(key)) refuse(config, fmt::format("{} is not supported", key));
  }
  refuse_layer_types(config, architecture);
}

void refuse_contradictions(const HfConfig& config, bool needs_head,
                           FunctionRef<bool(std::string_view name)> has_tensor) {
  refuse_missing_biases(config, has_tensor);
  refuse_other_experts(config, has_tensor);
  if (needs_head && !config.flag("tie_word_embeddings", true) && !has_tensor("output.weight")) {
    config.refuse(StatusCode::kInvalidArgument,
                  "tie_word_embeddings is false, but the weights have no lm_head.weight");
  }
}

}  // namespace dunlin
