#include "model/expert_keys.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/quote.h"

namespace dunlin {
namespace {

// expert_gating_func as GGUF files number it.
constexpr int kGatingSoftmax = 1, kGatingSigmoid = 2, kGatingSoftmaxOfChosen = 3;

constexpr const char* kCountKeys[] = {"num_local_experts", "num_experts", "n_routed_experts"};

ExpertScoring scoring_of(int gating) {
  if (gating == kGatingSigmoid) return ExpertScoring::kSigmoid;
  if (gating == kGatingSoftmaxOfChosen) return ExpertScoring::kSoftmaxOfChosen;
  return ExpertScoring::kSoftmax;
}

void copy_flag(HfImport& import, std::string_view key, std::string_view hf_key) {
  if (import.config().has(hf_key)) import.set(key, import.config().flag(hf_key));
}

void import_shared(HfImport& import) {
  const HfConfig& config = import.config();
  import.copy_integer("expert_shared_feed_forward_length", "shared_expert_intermediate_size");
  if (!config.has("n_shared_experts")) return;
  // Several shared experts are stored as a wide one.
  const std::int64_t count = config.integer("n_shared_experts");
  import.set_integer("expert_shared_count", count);
  // Both far above what is allowed, and their product fits.
  constexpr std::int64_t kMax = 1 << 30;
  import.set_integer(
      "expert_shared_feed_forward_length",
      std::clamp<std::int64_t>(count, 0, kMax) *
          std::clamp<std::int64_t>(config.integer("moe_intermediate_size"), 0, kMax));
}

}  // namespace

void read_experts(Hparams& hparams, ModelConfig& config) {
  MoeConfig& m = config.moe;
  m.num_experts = hparams.count("expert_count", 0, kMaxExperts, 0);
  if (m.num_experts == 0) return;
  m.experts_per_token = hparams.count("expert_used_count", 1, m.num_experts);
  m.ffn_size = hparams.count("expert_feed_forward_length", 1, 1 << 22, config.ffn_size);
  if (hparams.has("expert_gating_func")) {
    m.scoring =
        scoring_of(hparams.count("expert_gating_func", kGatingSoftmax, kGatingSoftmaxOfChosen));
  }
  m.normalize = hparams.flag("expert_weights_norm", m.normalize);
  // Some files write 0 for "no scale".
  if (const float scale = hparams.number("expert_weights_scale", m.scale); scale != 0)
    m.scale = scale;
  m.num_groups = std::max(1, hparams.count("expert_group_count", 0, kMaxExperts, m.num_groups));
  m.groups_per_token =
      std::max(1, hparams.count("expert_group_used_count", 0, kMaxExperts, m.num_groups));
  // DeepSeek V3 with its sigmoids sums two, V2 takes the best.
  m.two_score_a_group = m.scoring == ExpertScoring::kSigmoid;
  const int shared = hparams.count("expert_shared_count", 0, 1 << 10, 0);
  m.shared_ffn_size =
      hparams.count("expert_shared_feed_forward_length", 0, 1 << 22, shared * m.ffn_size);
  const int first = hparams.count("leading_dense_block_count", 0, 1 << 12, 0);
  for (int i = first; i < config.num_layers(); ++i) {
    config.layers[static_cast<std::size_t>(i)].has_experts =
        hparams.has_tensor(fmt::format("blk.{}.ffn_gate_inp.weight", i));
    if (hparams.has_tensor(fmt::format("blk.{}.exp_probs_b.bias", i))) m.correction_bias = true;
  }
}

bool hf_layer_has_experts(const HfConfig& config, std::int64_t layer) {
  const auto any = [&](const char* key) { return config.integer(key, 0) > 0; };
  if (std::none_of(std::begin(kCountKeys), std::end(kCountKeys), any)) return false;
  const auto step = [&](std::string_view key) {
    return std::max<std::int64_t>(1, config.integer(key, 1));
  };
  const std::vector<std::int64_t> dense = config.integers("mlp_only_layers");
  return layer >= config.integer("first_k_dense_replace", 0) &&
         layer % step("moe_layer_freq") == 0 && (layer + 1) % step("decoder_sparse_step") == 0 &&
         std::find(dense.begin(), dense.end(), layer) == dense.end();
}

void import_experts(HfImport& import) {
  for (const char* key : kCountKeys) import.copy_integer("expert_count", key);
  import.copy_integer("expert_used_count", "num_experts_per_tok");
  import.copy_integer("expert_feed_forward_length", "moe_intermediate_size");
  copy_flag(import, "expert_weights_norm", "norm_topk_prob");
  import.copy_number("expert_weights_scale", "routed_scaling_factor");
  import.copy_integer("leading_dense_block_count", "first_k_dense_replace");
  import_shared(import);
  const HfConfig& config = import.config();
  if (config.word("topk_method", "") != "greedy") {
    import.copy_integer("expert_group_count", "n_group");
    import.copy_integer("expert_group_used_count", "topk_group");
  }
  // Today's files of DeepSeek V3 don't say it.
  const std::vector<std::string> classes = config.words("architectures");
  const bool is_v3 = !classes.empty() && classes.front() == "DeepseekV3ForCausalLM";
  const std::string scoring = config.word("scoring_func", is_v3 ? "sigmoid" : "");
  if (scoring == "softmax" || scoring == "sigmoid") {
    import.set_integer("expert_gating_func",
                       scoring == "sigmoid" ? kGatingSigmoid : kGatingSoftmax);
  } else if (!scoring.empty()) {
    config.refuse(StatusCode::kUnimplemented,
                  fmt::format("scoring_func {} is not supported; supported are "
                              "softmax and sigmoid",
                              quote_for_message(scoring)));
  }
}

}  // namespace dunlin
