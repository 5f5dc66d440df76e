#include "model/hf_import.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numbers>
#include <utility>

#include <fmt/format.h>

#include "base/quote.h"
#include "model/hf_names.h"
#include "model/hf_refusals.h"

namespace dunlin {
namespace {

// What is far outside of every range stays so, and fits.
std::int64_t to_integer(double x) { return static_cast<std::int64_t>(std::clamp(x, -1.0, 1e15)); }

std::int64_t even(double x) { return to_integer(x) / 2 * 2; }

// Llama 3.1's frequencies: slow ones are divided by `factor`, fast ones stay, those between are
// mixed. As factors that divide the plain frequencies.
std::vector<float> llama3_factors(const HfConfig& rope, double theta, std::int64_t dims,
                                  double original_context) {
  const double factor = rope.number("factor");
  const double low = rope.number("low_freq_factor"), high = rope.number("high_freq_factor");
  if (!rope.outcome()) return {};
  if (!(factor >= 1 && low < high && original_context > 0)) {
    rope.refuse(StatusCode::kInvalidArgument,
                "RoPE type llama3 needs a factor of 1 or more, low_freq_factor below "
                "high_freq_factor, and original_max_position_embeddings above 0");
    return {};
  }
  std::vector<float> factors;
  constexpr std::int64_t kMaxDims = 1 << 12;  // more are refused later, by their own name
  for (std::int64_t i = 0; i < std::min(dims, kMaxDims) / 2; ++i) {
    const double frequency =
        std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(dims));
    const double turns = original_context * frequency / (2 * std::numbers::pi);
    const double smooth = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    factors.push_back(static_cast<float>(1.0 / ((1 - smooth) / factor + smooth)));
  }
  return factors;
}

// What frequencies are divided by.
std::vector<float> read_factors(const HfConfig& rope, std::string_view key) {
  const std::vector<double> values = rope.numbers(key);
  if (!std::all_of(values.begin(), values.end(), [](double value) { return value > 0; })) {
    rope.refuse(StatusCode::kInvalidArgument,
                fmt::format("{} must have numbers above 0 only", key));
  }
  return {values.begin(), values.end()};
}

// The scaling of YaRN's paper for keys and queries.
double yarn_attention(double factor, double scale) {
  return factor <= 1 ? 1.0 : 0.1 * scale * std::log(factor) + 1.0;
}

// What a key was read from, for messages.
constexpr std::pair<std::string_view, std::string_view> kOrigins[] = {
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.kv_lora_rank", "kv_lora_rank"},
    {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.q_lora_rank", "q_lora_rank"},
    {"attention.scale", "query_pre_attn_scalar or attention_multiplier"},
    {"attention.sliding_window", "sliding_window"},
    {"attention.sliding_window_pattern", "layer_types or sliding_window_pattern"},
    {"attention.value_length", "head_dim"},
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"block_count", "num_hidden_layers"},
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"embedding_scale", "embedding_multiplier"},
    {"expert_count", "number of experts (num_experts, num_local_experts, n_routed_experts)"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_group_count", "n_group"},
    {"expert_group_used_count", "topk_group"},
    {"expert_shared_count", "n_shared_experts"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_weights_scale", "routed_scaling_factor"},
    {"feed_forward_length", "intermediate_size"},
    {"final_logit_softcapping", "final_logit_softcapping"},
    {"leading_dense_block_count", "first_k_dense_replace"},
    {"logit_scale", "logit_scale or logits_scaling"},
    {"residual_scale", "residual_multiplier"},
    {"rope.dimension_count", "partial_rotary_factor times head_dim"},
    {"rope.freq_base", "rope_theta"},
    {"rope.freq_base_swa", "rope_local_base_freq"},
    {"rope.scaling.attn_factor", "rope_scaling.attention_factor"},
    {"rope.scaling.factor", "rope_scaling.factor"},
    {"rope.scaling.original_context_length", "original_max_position_embeddings"},
    {"vocab_size", "vocab_size"},
};

bool is_in_key(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

bool replace_keys(const std::map<std::string, MetadataValue, std::less<>>& metadata,
                  std::string& message) {
  const auto architecture = metadata.find("general.architecture");
  if (architecture == metadata.end()) return false;
  bool replaced = false;
  for (const auto& [key, origin] : kOrigins) {
    const std::string full = fmt::format("{}.{}", std::get<std::string>(architecture->second), key);
    std::size_t at = 0;
    while ((at = message.find(full, at)) != message.npos) {
      const std::size_t end = at + full.size();
      if (end < message.size() && (is_in_key(message[end]) || message[end] == '.')) {
        at = end;  // a longer key
        continue;
      }
      message.replace(at, full.size(), origin);
      at += origin.size();
      replaced = true;
    }
  }
  return replaced;
}

Result<const Architecture*> hf_architecture(const HfConfig& config) {
  const std::vector<std::string> classes = config.words("architectures");
  DUNLIN_TRY(config.outcome());
  if (classes.empty()) return invalid(config.path() + ": \"architectures\" is missing or empty");
  if (const Architecture* found = find_hf_architecture(classes.front())) return found;
  std::string known;
  for (const Architecture* row : architectures())
    for (const std::string_view name : row->hf_classes)
      known += (known.empty() ? "" : ", ") + std::string(name);
  return fail(StatusCode::kUnimplemented,
              fmt::format("{}: architecture {} is not supported; supported are {}", config.path(),
                          quote_for_message(classes.front()), known));
}

void HfImport::set(std::string_view key, MetadataValue value) {
  metadata_[fmt::format("{}.{}", architecture_.name, key)] = std::move(value);
}

void HfImport::copy_integer(std::string_view key, std::string_view hf_key) {
  if (config_.has(hf_key)) set_integer(key, config_.integer(hf_key));
}

void HfImport::copy_number(std::string_view key, std::string_view hf_key) {
  if (config_.has(hf_key)) set_number(key, config_.number(hf_key));
}

void HfImport::add_vector(std::string_view name, std::vector<float> values) {
  vectors_[std::string(name)] = std::move(values);
}

std::string_view spelled(const HfConfig& config, std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> kOlder[] = {
      {"hidden_size", "n_embd"},         {"max_position_embeddings", "n_positions"},
      {"num_attention_heads", "n_head"}, {"num_hidden_layers", "n_layer"},
      {"num_kv_heads", "n_head_kv"},
  };
  for (const auto& [name, older] : kOlder)
    if (name == key && !config.has(key) && config.has(older)) return older;
  return key;
}

std::int64_t HfImport::head_dim() const {
  if (config_.has("head_dim")) return config_.integer("head_dim");
  const std::int64_t heads = config_.integer(spelled("num_attention_heads"));
  return heads > 0 ? config_.integer(spelled("hidden_size")) / heads : 1;
}

void HfImport::set_ffn_size(std::string_view hf_key) {
  const std::int64_t hidden = config_.integer(spelled("hidden_size"));
  // What is no possible size is refused later, by its own name.
  const std::int64_t usual = 4 * std::clamp<std::int64_t>(hidden, 0, 1 << 20);
  set_integer("feed_forward_length", config_.integer(hf_key, usual));
}

void HfImport::set_rope_factors(const HfConfig& rope, double theta, std::int64_t dims) {
  const std::string type = rope.word("rope_type", rope.word("type", "default"));
  if (type == "default") return;
  const double context = config_.number("max_position_embeddings");
  const double original = rope.number("original_max_position_embeddings",
                                      config_.number("original_max_position_embeddings", context));
  // NTK scaling begins behind the model's context, where no text ends up here.
  if (type == "dynamic" && original == context && !rope.has("alpha")) return;
  if (type == "llama3") {
    add_vector("rope_freqs.weight", llama3_factors(rope, theta, dims, original));
  } else if (type == "linear") {
    set("rope.scaling.type", std::string("linear"));
    set_number("rope.scaling.factor", rope.number("factor"));
  } else if (type == "yarn") {
    const double factor = rope.number("factor");
    set("rope.scaling.type", std::string("yarn"));
    set_number("rope.scaling.factor", factor);
    set_integer("rope.scaling.original_context_length", to_integer(original));
    set_number("rope.scaling.yarn_beta_fast", rope.number("beta_fast", 32.0));
    set_number("rope.scaling.yarn_beta_slow", rope.number("beta_slow", 1.0));
    // No key of llama.cpp's, which always rounds.
    set("rope.scaling.yarn_round_ramp", rope.flag("truncate", true));
    // attn_factor multiplies the paper's own scaling.
    const double wanted = rope.number("attention_factor", yarn_attention(factor, 1));
    set_number("rope.scaling.attn_factor", wanted / yarn_attention(factor, 1));
  } else if (type == "longrope" || type == "su") {
    const double factor = rope.number("factor", context / original);
    set("rope.scaling.type", std::string("longrope"));
    set_integer("rope.scaling.original_context_length", to_integer(original));
    const double by_paper =
        factor <= 1 ? 1.0 : std::sqrt(1 + std::log(factor) / std::log(original));
    set_number("rope.scaling.attn_factor", rope.number("attention_factor", by_paper));
    add_vector("rope_factors_long.weight", read_factors(rope, "long_factor"));
    add_vector("rope_factors_short.weight", read_factors(rope, "short_factor"));
  } else {
    config_.refuse(StatusCode::kUnimplemented,
                   fmt::format("RoPE type {} is not supported; supported are default, linear, "
                               "llama3, yarn and longrope",
                               quote_for_message(type)));
  }
}

void HfImport::set_rope(const HfConfig& rope, double theta) {
  const double rotary =
      rope.number("partial_rotary_factor", config_.number("partial_rotary_factor", 1.0));
  const std::int64_t dims =
      rotary > 0 && rotary <= 1 ? even(static_cast<double>(head_dim()) * rotary) : 0;
  set_number("rope.freq_base", theta);
  set_integer("rope.dimension_count", dims);
  set_rope_factors(rope, theta, dims);
}

HfConfig HfImport::rope() const {
  return config_.object(config_.has("rope_parameters") ? "rope_parameters" : "rope_scaling");
}

bool HfImport::ignores(std::string_view hf_name) const {
  if (!ignores_layers_behind_) return false;
  const std::optional<std::int64_t> layer = layer_of(hf_name);
  return layer && *layer >= config_.integer("num_hidden_layers");
}

// Today's spelling has all in rope_parameters; the older one has rope_theta beside rope_scaling.
void HfImport::set_shared_rope() {
  const HfConfig rope = this->rope();
  set_rope(rope, rope.number("rope_theta", config_.number("rope_theta", 10000.0)));
}

void HfImport::set_shared() {
  copy_integer("context_length", spelled("max_position_embeddings"));
  set_integer("embedding_length", config_.integer(spelled("hidden_size")));
  set_integer("block_count", config_.integer(spelled("num_hidden_layers")));
  copy_integer("feed_forward_length", "intermediate_size");
  set_integer("attention.head_count", config_.integer(spelled("num_attention_heads")));
  copy_integer("attention.head_count_kv", "num_key_value_heads");
  copy_integer("vocab_size", "vocab_size");
  set_integer("attention.key_length", head_dim());
  set_integer("attention.value_length", head_dim());
  copy_number("attention.layer_norm_rms_epsilon", "rms_norm_eps");
  if (config_.flag("use_sliding_window", true))
    copy_integer("attention.sliding_window", "sliding_window");
}

Outcome HfImport::run() {
  metadata_["general.architecture"] = std::string(architecture_.name);
  metadata_["general.name"] = config_.word("_name_or_path", "");
  set_shared();
  set_shared_rope();
  refuse_unsupported(config_, architecture_);
  if (architecture_.import != nullptr) architecture_.import(*this);
  if (!metadata_.contains(fmt::format("{}.context_length", architecture_.name)))
    set_integer("context_length", config_.integer("max_position_embeddings"));
  return config_.outcome();
}

}  // namespace dunlin
