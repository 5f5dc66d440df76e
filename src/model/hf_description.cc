#include "model/hf_description.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/mapped_file.h"
#include "model/expert_keys.h"
#include "model/hf_import.h"
#include "model/registry.h"

namespace dunlin {
namespace {

TensorView shape_of(std::int64_t rows, std::int64_t cols) {
  TensorView view;
  view.rank = rows > 1 ? 2 : 1;
  view.shape = {rows > 1 ? rows : cols, rows > 1 ? cols : 1, 1, 1};
  return view;
}

// "attn_q.bias" and 3 of "blk.3.attn_q.bias"; -1 where it is no layer's.
std::pair<std::int64_t, std::string_view> split_layer(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  std::int64_t layer = -1;
  if (!name.starts_with(kPrefix)) return {-1, name};
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, layer);
  if (error != std::errc() || rest == end || *rest != '.' || layer < 0) return {-1, name};
  return {layer, std::string_view(rest + 1, static_cast<std::size_t>(end - rest - 1))};
}

}  // namespace

Result<std::shared_ptr<const HfDescription>> HfDescription::open(const std::string& file) {
  DUNLIN_ASSIGN(mapped, MappedFile::open(file));
  DUNLIN_ASSIGN(config, HfConfig::parse(mapped.text(), file));
  DUNLIN_ASSIGN(architecture, hf_architecture(config));
  HfImport import(config, *architecture);
  DUNLIN_TRY(import.run());
  std::shared_ptr<HfDescription> description(new HfDescription(config));
  description->metadata_ = import.take_metadata();
  description->vectors_ = import.take_vectors();
  description->ties_head_ =
      config.flag("tie_word_embeddings", architecture->hf_ties_head_by_default);
  // Counted with, so refused here where they are missing or no numbers.
  for (const std::string_view key : {"vocab_size", "num_hidden_layers"})
    config.integer(import.spelled(key));
  DUNLIN_TRY(config.outcome());
  return description;
}

std::optional<MetadataValue> HfDescription::metadata(std::string_view key) const {
  const auto it = metadata_.find(key);
  if (it == metadata_.end()) return std::nullopt;
  return it->second;
}

Status HfDescription::in_own_words(Status status) const {
  std::string message = status.message();
  return replace_keys(metadata_, message) ? Status(status.code(), std::move(message)) : status;
}

DType HfDescription::dtype() const {
  const std::string word = config_.word("torch_dtype", config_.word("dtype", "bfloat16"));
  return word == "float32" ? DType::kF32 : word == "float16" ? DType::kF16 : DType::kBF16;
}

// What config.json says of tensors that some models of an architecture have and others lack.
bool HfDescription::has_layer_tensor(std::int64_t layer, std::string_view name) const {
  const auto flag = [&](std::string_view key) { return config_.flag(key, false); };
  if (name == "attn_q.bias" || name == "attn_output.bias")
    return flag("attention_bias") || flag("use_bias");
  if (name == "ffn_gate.bias" || name == "ffn_up.bias") return flag("mlp_bias") || flag("use_bias");
  if (name == "attn_norm_2.weight") return flag("new_decoder_architecture");
  if (name == "ffn_gate_inp.weight") return hf_layer_has_experts(config_, layer);
  // DeepSeek V3 corrects its choice; today's files of it don't say so.
  if (name == "exp_probs_b.bias") {
    const std::vector<std::string> classes = config_.words("architectures");
    const bool is_v3 = !classes.empty() && classes.front() == "DeepseekV3ForCausalLM";
    return hf_layer_has_experts(config_, layer) &&
           config_.word("topk_method", is_v3 ? "noaux_tc" : "") == "noaux_tc";
  }
  return false;
}

std::optional<TensorView> HfDescription::find(std::string_view name) const {
  if (const auto it = vectors_.find(name); it != vectors_.end()) {
    TensorView view = shape_of(1, static_cast<std::int64_t>(it->second.size()));
    view.data = reinterpret_cast<const std::byte*>(it->second.data());
    return view;
  }
  const std::int64_t vocab = config_.integer("vocab_size", 0);
  if (name == "token_embd.weight" || (name == "output.weight" && !ties_head_))
    return shape_of(vocab, 1);
  const auto [layer, rest] = split_layer(name);
  if (layer >= 0 && has_layer_tensor(layer, rest)) return shape_of(1, 1);
  return std::nullopt;
}

}  // namespace dunlin
