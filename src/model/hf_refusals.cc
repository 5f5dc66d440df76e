#include "model/hf_refusals.h"

#include <algorithm>
#include <span>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/quote.h"

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

// Architectures parted by spaces; "*" are all.
bool is_for(std::string_view architectures, std::string_view architecture) {
  return architectures == "*" || lists(architectures, architecture);
}

struct WordRow {
  std::string_view architectures;
  std::string_view key;
  std::string_view supported;  // parted by spaces
};
constexpr WordRow kWords[] = {
    {"cohere2 deepseek2 glm4 gpt-oss granite llama olmo2 phi3 qwen2 qwen2moe qwen3 qwen3moe "
     "smollm3",
     "hidden_act", "silu swish"},
    {"gemma2 gemma3", "hidden_activation", "gelu_pytorch_tanh"},
    {"starcoder2", "hidden_act", "gelu_pytorch_tanh gelu_new"},
    {"gpt2", "activation_function", "gelu_new gelu_pytorch_tanh"},
    {"falcon", "activation", "gelu"},
    {"bert", "hidden_act", "gelu"},
    {"bert", "position_embedding_type", "absolute"},
};

struct FlagRow {
  std::string_view architectures;
  std::string_view key;
  bool supported;
};
constexpr FlagRow kFlags[] = {
    {"*", "use_bidirectional_attention", false},
    {"falcon", "alibi", false},
    {"gpt2", "scale_attn_weights", true},
    {"gpt2", "scale_attn_by_inverse_layer_idx", false},
    {"bert", "is_decoder", false},
    {"deepseek2", "rope_interleave", true},
    {"qwen2moe", "qkv_bias", true},
};

// Not in any form.
struct MissingRow {
  std::string_view architectures;
  std::string_view key;
};
constexpr MissingRow kMissing[] = {
    {"*", "clip_qkv"},
    {"*", "attention_chunk_size"},
};

// Those that know no windows.
constexpr std::string_view kFullAttentionOnly = "deepseek2 falcon glm4 gpt2 granite olmo2";

struct BiasRow {
  std::string_view key;
  std::span<const std::string_view> tensors;  // any of them
};
constexpr std::string_view kAttentionBiases[] = {"blk.0.attn_q.bias", "blk.0.attn_qkv.bias",
                                                 "blk.0.attn_q_a.bias", "blk.0.attn_kv_a_mqa.bias"};
constexpr std::string_view kMlpBiases[] = {"blk.0.ffn_up.bias", "blk.0.ffn_up_exps.bias"};
constexpr BiasRow kBiases[] = {{"attention_bias", kAttentionBiases}, {"mlp_bias", kMlpBiases}};

void refuse(const HfConfig& config, std::string message) {
  config.refuse(StatusCode::kUnimplemented, std::move(message));
}

}  // namespace

void refuse_unsupported(const HfConfig& config, std::string_view architecture) {
  for (const WordRow& row : kWords) {
    if (!is_for(row.architectures, architecture) || !config.has(row.key)) continue;
    const std::string word = config.word(row.key);
    if (!lists(row.supported, word)) {
      refuse(config, fmt::format("{} {} is not supported in architecture {}; supported: {}",
                                 row.key, quote_for_message(word), architecture, row.supported));
    }
  }
  for (const FlagRow& row : kFlags) {
    if (is_for(row.architectures, architecture) &&
        config.flag(row.key, row.supported) != row.supported) {
      refuse(config, fmt::format("{} {} is not supported", row.key, !row.supported));
    }
  }
  for (const MissingRow& row : kMissing) {
    if (is_for(row.architectures, architecture) && config.has(row.key))
      refuse(config, fmt::format("{} is not supported", row.key));
  }
  if (!is_for(kFullAttentionOnly, architecture)) return;
  for (const std::string& type : config.words("layer_types")) {
    if (type != "full_attention") {
      refuse(config, fmt::format("layer_types has {}; architecture {} knows full_attention only",
                                 quote_for_message(type), architecture));
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

}  // namespace dunlin
