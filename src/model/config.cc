#include "model/config.h"

#include <cmath>
#include <span>
#include <string_view>

#include <fmt/format.h>

namespace dunlin {
namespace {

// Upper bounds are far above any model's, and low enough that products of two fit 64 bits and
// sizes of buffers can't wrap.
struct IntRange {
  std::string_view key;
  int value;
  int max;
};

Outcome check_ranges(const ModelConfig& c, std::span<const IntRange> ranges) {
  for (const IntRange& range : ranges) {
    if (range.value < 1 || range.value > range.max) {
      return invalid(fmt::format("{}.{} is {}, but must be from 1 to {}", c.architecture, range.key,
                                 range.value, range.max));
    }
  }
  return {};
}

Outcome check_sizes(const ModelConfig& c) {
  const IntRange ranges[] = {
      {"embedding_length", c.hidden_size, 1 << 20},
      {"attention.head_count", c.num_heads, 1 << 14},
      {"attention.head_count_kv", c.num_kv_heads, 1 << 14},
      {"attention.key_length", c.head_dim, 1 << 12},
      {"feed_forward_length", c.ffn_size, 1 << 22},
      {"vocab_size", c.vocab_size, 1 << 24},
      {"context_length", c.context_length, 1 << 28},
      {"block_count", c.num_layers(), 1 << 12},
  };
  DUNLIN_TRY(check_ranges(c, ranges));
  if (c.num_heads % c.num_kv_heads != 0) {
    return invalid(fmt::format(
        "{0}.attention.head_count_kv is {1}, which does not divide {0}.attention.head_count {2}",
        c.architecture, c.num_kv_heads, c.num_heads));
  }
  return {};
}

Outcome check_latent(const ModelConfig& c) {
  const LatentAttention& latent = c.latent;
  const IntRange ranges[] = {
      {"attention.kv_lora_rank", latent.kv_rank, 1 << 12},
      {"attention.q_lora_rank", latent.q_rank == 0 ? 1 : latent.q_rank, 1 << 20},
      {"rope.dimension_count", latent.rope_dim, 1 << 12},
      {"attention.key_length_mla, less rope.dimension_count,", latent.nope_dim, 1 << 12},
      {"attention.value_length_mla", latent.value_dim, 1 << 12},
  };
  DUNLIN_TRY(check_ranges(c, ranges));
  for (const RopeConfig& rope : c.ropes) {
    if (rope.dims != latent.rope_dim || c.num_kv_heads != 1 ||
        c.head_dim != latent.kv_rank + latent.rope_dim) {
      return fail(
          StatusCode::kInternal,
          fmt::format("{}: the cached keys are no latent and a rotated key", c.architecture));
    }
  }
  return {};
}

Outcome check_floats(const ModelConfig& c) {
  // Not written as "value out of range" so that NaN is refused too.
  if (!(c.norm_eps > 0.0f && c.norm_eps < 1.0f)) {
    return invalid(
        fmt::format("{}.attention.layer_norm_rms_epsilon is {}, but must be above 0 and below 1",
                    c.architecture, c.norm_eps));
  }
  if (!(std::isfinite(c.embedding_scale) && c.embedding_scale > 0.0f && c.attention_scale > 0.0f &&
        c.attention_scale < 1e6f)) {
    return invalid(fmt::format("{}: scale factors must be positive numbers", c.architecture));
  }
  if (!(std::isfinite(c.logit_scale) && c.logit_scale > 0.0f && std::isfinite(c.residual_scale) &&
        c.residual_scale > 0.0f)) {
    return invalid(fmt::format("{}: scale factors must be positive numbers", c.architecture));
  }
  if (!(c.attention_softcap >= 0.0f && c.attention_softcap < 1e9f && c.logit_softcap >= 0.0f &&
        c.logit_softcap < 1e9f)) {
    return invalid(fmt::format("{}: soft caps must be 0 or positive numbers", c.architecture));
  }
  return {};
}

Outcome check_experts(const ModelConfig& c) {
  const MoeConfig& m = c.moe;
  if (m.num_experts == 0) return {};
  const IntRange ranges[] = {
      {"expert_count", m.num_experts, kMaxExperts},
      {"expert_used_count", m.experts_per_token, m.num_experts},
      {"expert_feed_forward_length", m.ffn_size, 1 << 22},
      {"expert_group_count", m.num_groups, m.num_experts},
      {"expert_group_used_count", m.groups_per_token, m.num_groups},
  };
  DUNLIN_TRY(check_ranges(c, ranges));
  const IntRange shared{"expert_shared_feed_forward_length", m.shared_ffn_size, 1 << 22};
  if (m.shared_ffn_size != 0) DUNLIN_TRY(check_ranges(c, {&shared, 1}));
  if (m.num_experts % m.num_groups != 0) {
    return invalid(
        fmt::format("{0}.expert_group_count is {1}, which does not divide "
                    "{0}.expert_count {2}",
                    c.architecture, m.num_groups, m.num_experts));
  }
  if (m.num_experts / m.num_groups * m.groups_per_token < m.experts_per_token) {
    return invalid(
        fmt::format("{0}.expert_group_used_count is {1}: such groups have fewer experts "
                    "than {0}.expert_used_count {2}",
                    c.architecture, m.groups_per_token, m.experts_per_token));
  }
  if (!(std::isfinite(m.scale) && m.scale > 0.0f)) {
    return invalid(fmt::format("{}.expert_weights_scale is {}, but must be a positive number",
                               c.architecture, m.scale));
  }
  if (c.parallel || !c.gated_mlp || (m.shared_gate && m.shared_ffn_size == 0)) {
    return fail(StatusCode::kInternal,
                fmt::format("{}: an impossible mixture of experts", c.architecture));
  }
  return {};
}

Outcome check_rope(const ModelConfig& c, const RopeConfig& rope) {
  if (rope.dims < 2 || rope.dims > c.head_dim || rope.dims % 2 != 0) {
    return invalid(fmt::format(
        "{}.rope.dimension_count is {}, but must be even and from 2 to the head size {}",
        c.architecture, rope.dims, c.head_dim));
  }
  if (!(rope.theta >= 1.0f && rope.theta < 1e12f)) {
    return invalid(fmt::format("{}.rope.freq_base is {}, but must be from 1 to 1e12",
                               c.architecture, rope.theta));
  }
  if (!(rope.position_divisor > 0.0f && rope.position_divisor < 1e6f)) {
    return invalid(fmt::format("{}.rope.scaling.factor is {}, but must be above 0 and below 1e6",
                               c.architecture, rope.position_divisor));
  }
  if (!(std::isfinite(rope.attention_factor) && rope.attention_factor > 0.0f)) {
    return invalid(
        fmt::format("{}.rope.scaling.attn_factor must be a positive number", c.architecture));
  }
  const bool is_long = rope.yarn.factor != 0 || rope.factors == RopeFactors::kLongShort;
  if (is_long && rope.original_context < 1) {
    return invalid(
        fmt::format("{}.rope.scaling.original_context_length is {}, but must be 1 or "
                    "more",
                    c.architecture, rope.original_context));
  }
  if (rope.yarn.factor != 0 &&
      !(rope.yarn.factor >= 1.0f && rope.yarn.factor < 1e6f && rope.yarn.beta_fast > 0.0f &&
        rope.yarn.beta_slow > 0.0f && rope.theta > 1.0f)) {
    return invalid(fmt::format("{}.rope.scaling: impossible numbers for YaRN", c.architecture));
  }
  return {};
}

// What no architecture file may combine.
Outcome check_encoder(const ModelConfig& c) {
  const bool has_odd_residual = c.norms_residual && (c.pre_norms || c.parallel);
  const bool has_odd_types = c.num_token_types > 0 && !c.learned_positions;
  if (has_odd_residual || has_odd_types || (c.is_encoder && c.pooling == Pooling::kNone)) {
    return fail(StatusCode::kInternal, fmt::format("{}: an impossible encoder", c.architecture));
  }
  return {};
}

}  // namespace

Outcome validate(const ModelConfig& config) {
  DUNLIN_TRY(check_sizes(config));
  if (config.is_latent()) DUNLIN_TRY(check_latent(config));
  DUNLIN_TRY(check_floats(config));
  DUNLIN_TRY(check_experts(config));
  DUNLIN_TRY(check_encoder(config));
  for (const RopeConfig& rope : config.ropes) DUNLIN_TRY(check_rope(config, rope));
  for (const LayerConfig& layer : config.layers) {
    if (layer.window < 0) {
      return invalid(fmt::format("{}.attention.sliding_window is {}, but must be 0 or more",
                                 config.architecture, layer.window));
    }
    if (layer.rope_idx == kNoRope) continue;
    if (layer.rope_idx < 0 || static_cast<std::size_t>(layer.rope_idx) >= config.ropes.size()) {
      return fail(StatusCode::kInternal,
                  fmt::format("{}: a layer has no RoPE description", config.architecture));
    }
  }
  return {};
}

KvLayout kv_layout(const ModelConfig& config, KvFormats formats) {
  std::vector<int> windows;
  windows.reserve(config.layers.size());
  for (const LayerConfig& layer : config.layers) windows.push_back(layer.window);
  const int value_dim = config.is_latent() ? config.latent.kv_rank : config.head_dim;
  KvLayout layout =
      KvLayout::make(windows, config.num_kv_heads, config.head_dim, value_dim, formats);
  layout.values_in_keys = config.is_latent();
  return layout;
}

}  // namespace dunlin
