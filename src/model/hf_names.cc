#include "model/hf_names.h"

#include <array>
#include <charconv>
#include <span>

namespace dunlin {
namespace {

// Llama's, which most architectures took over.
constexpr HfTensorName kShared[] = {
    {"token_embd", "embed_tokens"},
    {"output_norm", "norm"},
    {"output", "lm_head"},
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"attn_output", "self_attn.o_proj"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    // Experts, as Qwen and DeepSeek call them.
    {"ffn_gate_inp", "mlp.gate"},
    {"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
    {"ffn_gate.*", "mlp.experts.*.gate_proj"},
    {"ffn_up.*", "mlp.experts.*.up_proj"},
    {"ffn_down.*", "mlp.experts.*.down_proj"},
    {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
    {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
    {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
    {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
    {"ffn_down_shexp", "mlp.shared_experts.down_proj"},
    // Older checkpoints carry what RoPE computes from its base.
    {"", "self_attn.rotary_emb.inv_freq"},
};

bool take_prefix(std::string_view prefix, std::string_view& text) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t num_digits(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && is_digit(text[n])) ++n;
  return n;
}

// Whether `text` is `pattern` with digits for its '*', which go to `number`.
bool matches(std::string_view pattern, std::string_view text, std::string_view& number) {
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  const std::size_t digits = num_digits(text);
  if (digits == 0 || text.substr(digits) != pattern.substr(star + 1)) return false;
  number = text.substr(0, digits);
  return true;
}

std::string fill(std::string_view pattern, std::string_view number) {
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos) return std::string(pattern);
  return std::string(pattern.substr(0, star)) + std::string(number) +
         std::string(pattern.substr(star + 1));
}

// "self_attn.q_proj.weight" to "attn_q.weight", with `prefix` in front.
void add_matches(std::span<const HfTensorName> names, std::string_view hf, std::string_view prefix,
                 std::vector<CanonicalName>& found) {
  for (const HfTensorName& row : names) {
    std::string_view number;
    std::string canonical;
    if (matches(row.hf, hf, number)) {
      canonical = fill(row.canonical, number);
    } else {
      std::string_view end;
      for (const std::string_view candidate : {".weight", ".bias"})
        if (hf.ends_with(candidate)) end = candidate;
      if (end.empty() || !matches(row.hf, hf.substr(0, hf.size() - end.size()), number)) continue;
      canonical = fill(row.canonical, number);
      if (!canonical.empty()) canonical += end;
    }
    if (!canonical.empty()) canonical.insert(0, prefix);
    found.push_back({std::move(canonical), row.transform});
  }
}

// Takes "model.layers.3.", "transformer.h.3.", "encoder.layer.3.", "layers.3." from the front, or
// only "model." and the like where there is no layer. The layer's digits, or none.
std::string_view take_layer(std::string_view& hf_name) {
  if (!take_prefix("model.", hf_name)) take_prefix("transformer.", hf_name);
  std::string_view rest = hf_name;
  if (!take_prefix("layers.", rest) && !take_prefix("h.", rest) &&
      !take_prefix("encoder.layer.", rest))
    return {};
  const std::size_t digits = num_digits(rest);
  if (digits == 0 || !rest.substr(digits).starts_with(".")) return {};
  hf_name = rest.substr(digits + 1);
  return rest.substr(0, digits);
}

}  // namespace

std::vector<CanonicalName> canonical_names(const Architecture& architecture,
                                           std::string_view hf_name) {
  const std::string_view layer = take_layer(hf_name);
  const std::string prefix = layer.empty() ? "" : "blk." + std::string(layer) + ".";
  std::vector<CanonicalName> found;
  add_matches(architecture.hf_tensors, hf_name, prefix, found);
  if (found.empty()) add_matches(kShared, hf_name, prefix, found);
  return found;
}

std::optional<std::int64_t> layer_of(std::string_view hf_name) {
  const std::string_view digits = take_layer(hf_name);
  std::int64_t layer = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), layer);
  if (digits.empty() || error != std::errc()) return std::nullopt;
  return layer;
}

}  // namespace dunlin
