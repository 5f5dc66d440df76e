#include "model/registry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace dunlin {

// One line for each file in architectures/, made by CMake.
#define DUNLIN_ARCHITECTURE(name) const Architecture& name##_architecture();
#include "model/architecture_list.inc"
#undef DUNLIN_ARCHITECTURE

namespace {

constexpr int kMaxInt = std::numeric_limits<int>::max();

// Keys that only matter where they say something other than "none": read over by every
// architecture here, so a file that uses them must not load with wrong results.
void refuse_unsupported(Hparams& hparams) {
  if (!(hparams.number("attention.max_alibi_bias", 0.0f) <= 0.0f)) {
    hparams.refuse(StatusCode::kUnimplemented, "ALiBi positions are not supported yet");
  }
  if (!(hparams.number("attention.clamp_kqv", 0.0f) <= 0.0f)) {
    hparams.refuse(StatusCode::kUnimplemented, "clamped Q, K and V are not supported yet");
  }
}

YarnConfig read_yarn(Hparams& hparams) {
  YarnConfig yarn;
  yarn.factor = hparams.number("rope.scaling.factor");
  yarn.beta_fast = hparams.number("rope.scaling.yarn_beta_fast", yarn.beta_fast);
  yarn.beta_slow = hparams.number("rope.scaling.yarn_beta_slow", yarn.beta_slow);
  yarn.round_ramp = hparams.flag("rope.scaling.yarn_round_ramp", yarn.round_ramp);
  return yarn;
}

RopeConfig read_rope(Hparams& hparams, int head_dim) {
  RopeConfig rope;
  rope.theta = hparams.number("rope.freq_base", 10000.0f);
  rope.dims = hparams.count("rope.dimension_count", 0, kMaxInt, head_dim);
  if (hparams.has_tensor("rope_freqs.weight")) rope.factors = RopeFactors::kOne;
  if (hparams.has_tensor("rope_factors_long.weight")) rope.factors = RopeFactors::kLongShort;
  const std::string scaling = hparams.word("rope.scaling.type", "none");
  rope.original_context = hparams.count("rope.scaling.original_context_length", 0, kMaxInt, 0);
  // The older key is a plain linear factor without a type.
  const float old_factor = hparams.number("rope.scale_linear", 1.0f);
  if (scaling == "linear") {
    rope.position_divisor = hparams.number("rope.scaling.factor", old_factor);
  } else if (scaling == "yarn") {
    rope.yarn = read_yarn(hparams);
    rope.attention_factor = hparams.number("rope.scaling.attn_factor", 1.0f) *
                            (0.1f * std::log(rope.yarn.factor) + 1.0f);
  } else if (scaling == "none" || scaling == "longrope") {
    rope.position_divisor = old_factor;
    rope.attention_factor = hparams.number("rope.scaling.attn_factor", 1.0f);
  } else {
    hparams.refuse(StatusCode::kUnimplemented,
                   fmt::format("RoPE scaling \"{}\" is not supported yet", scaling));
  }
  return rope;
}

// GGUF's number of a pooling. An encoder's texts have no end that says more than the rest.
Pooling read_pooling(Hparams& hparams, bool is_encoder) {
  constexpr int kUnsaid = 0, kRank = 4;
  const int stored = hparams.count("pooling_type", kUnsaid, kRank, kUnsaid);
  if (stored == kRank) {
    hparams.refuse(StatusCode::kUnimplemented,
                   "rerankers (pooling_type 4) are not supported yet; supported are models that "
                   "give embeddings and models that generate text");
  }
  if (stored != kUnsaid) return static_cast<Pooling>(stored);
  return is_encoder ? Pooling::kMean : Pooling::kLast;
}

// Rows of the embedding; the tokenizer must have as many tokens, or ids would be out of range.
int read_vocab_size(Hparams& hparams) {
  const std::optional<TensorView> embedding = hparams.checkpoint().find("token_embd.weight");
  if (!embedding) {
    hparams.refuse(StatusCode::kInvalidArgument, "tensor token_embd.weight is missing");
    return 1;
  }
  const std::int64_t rows = embedding->rows();
  const int vocab_size = static_cast<int>(std::min<std::int64_t>(rows, kMaxInt));
  if (const int said = hparams.count("vocab_size", 1, kMaxInt, vocab_size); said != vocab_size) {
    hparams.refuse(
        StatusCode::kInvalidArgument,
        fmt::format("vocab_size is {}, but tensor token_embd.weight has {} rows", said, rows));
  }
  return vocab_size;
}

void read_shared(Hparams& hparams, ModelConfig& config) {
  config.hidden_size = hparams.count("embedding_length", 1, 1 << 20);
  config.num_heads = hparams.count("attention.head_count", 1, 1 << 14);
  config.num_kv_heads = hparams.count("attention.head_count_kv", 1, 1 << 14, config.num_heads);
  if (!hparams.has("attention.key_length") && config.hidden_size % config.num_heads != 0) {
    hparams.refuse(
        StatusCode::kInvalidArgument,
        fmt::format("{0}.embedding_length {1} is not a multiple of {0}.attention.head_count {2}",
                    config.architecture, config.hidden_size, config.num_heads));
  }
  config.head_dim = hparams.count("attention.key_length", 1, 1 << 12,
                                  std::max(1, config.hidden_size / config.num_heads));
  // With latent attention values are a part of the cached keys.
  if (!hparams.has("attention.kv_lora_rank") &&
      hparams.count("attention.value_length", 1, kMaxInt, config.head_dim) != config.head_dim) {
    hparams.refuse(StatusCode::kUnimplemented,
                   "attention.value_length other than attention.key_length is not supported yet");
  }
  config.ffn_size = hparams.count("feed_forward_length", 1, 1 << 22);
  config.context_length = hparams.count("context_length", 1, 1 << 28);
  config.norm_eps = hparams.has("attention.layer_norm_epsilon")
                        ? hparams.number("attention.layer_norm_epsilon")
                        : hparams.number("attention.layer_norm_rms_epsilon");
  config.attention_scale =
      hparams.number("attention.scale", 1.0f / std::sqrt(static_cast<float>(config.head_dim)));
  config.tied_head = !hparams.has_tensor("output.weight");
  config.vocab_size = read_vocab_size(hparams);
  config.ropes = {read_rope(hparams, config.head_dim)};
  const int num_layers = hparams.count("block_count", 1, 1 << 12);
  config.layers.assign(static_cast<std::size_t>(num_layers), LayerConfig{});
  refuse_unsupported(hparams);
}

}  // namespace

std::span<const Architecture* const> architectures() {
  static const std::array kArchitectures = {
#define DUNLIN_ARCHITECTURE(name) &name##_architecture(),
#include "model/architecture_list.inc"
#undef DUNLIN_ARCHITECTURE
  };
  return kArchitectures;
}

const Architecture* find_architecture(std::string_view name) {
  for (const Architecture* architecture : architectures())
    if (architecture->name == name) return architecture;
  return nullptr;
}

const Architecture* find_hf_architecture(std::string_view hf_class) {
  for (const Architecture* architecture : architectures())
    for (const std::string_view known : architecture->hf_classes)
      if (known == hf_class) return architecture;
  return nullptr;
}

namespace {

Result<ModelConfig> read_canonical(const Checkpoint& checkpoint) {
  const auto stored = checkpoint.metadata("general.architecture");
  const auto* name = stored ? std::get_if<std::string>(&*stored) : nullptr;
  if (name == nullptr) {
    return invalid(fmt::format("{}: metadata key general.architecture is missing or no string",
                               checkpoint.path()));
  }
  const Architecture* architecture = find_architecture(*name);
  if (architecture == nullptr) {
    std::string known;
    for (const Architecture* row : architectures())
      known += (known.empty() ? "" : ", ") + std::string(row->name);
    return fail(StatusCode::kUnimplemented,
                fmt::format("{}: architecture \"{}\" is not supported; supported are {}",
                            checkpoint.path(), *name, known));
  }
  ModelConfig config;
  config.architecture = *name;
  if (const auto title = checkpoint.metadata("general.name"))
    if (const auto* text = std::get_if<std::string>(&*title)) config.name = *text;
  Hparams hparams(checkpoint, *name);
  read_shared(hparams, config);
  DUNLIN_TRY(hparams.outcome());
  architecture->configure(hparams, config);
  config.pooling = read_pooling(hparams, config.is_encoder);
  if (hparams.flag("attention.causal", !config.is_encoder) == config.is_encoder) {
    hparams.refuse(StatusCode::kUnimplemented,
                   fmt::format("attention.causal {} is not supported in architecture {}",
                               config.is_encoder, config.architecture));
  }
  if (hparams.count("expert_count", 0, kMaxInt, 0) > 0 && config.moe.num_experts == 0) {
    hparams.refuse(StatusCode::kUnimplemented,
                   fmt::format("experts (expert_count) are not supported in architecture {}",
                               config.architecture));
  }
  DUNLIN_TRY(hparams.outcome());
  if (Outcome valid = validate(config); !valid) {
    return tl::unexpected<Status>(valid.error().with_prefix(checkpoint.path()));
  }
  return config;
}

}  // namespace

Result<ModelConfig> read_config(const Checkpoint& checkpoint) {
  auto config = read_canonical(checkpoint);
  if (config) return config;
  return tl::unexpected<Status>(checkpoint.in_own_words(std::move(config).error()));
}

}  // namespace dunlin
