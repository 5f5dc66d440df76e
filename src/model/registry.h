// The table of architectures. Adding one takes one file in architectures/ (docs/adding-a-model.md).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "dunlin/status.h"
#include "formats/checkpoint.h"
#include "model/config.h"
#include "model/hparams.h"
#include "model/lazy_tensor.h"

namespace dunlin {

class HfConfig;
class HfImport;

// What a stored tensor becomes.
using HfTransform = Result<LazyTensor> (*)(const HfConfig& config, const LazyTensor& stored);

// A tensor's canonical name and that of Hugging Face's checkpoints, both without what layers put in
// front ("attn_q" for "blk.3.attn_q" and "self_attn.q_proj" for "model.layers.3.self_attn.q_proj")
// and without ".weight" and ".bias", which both sides have; or with the end, where they differ
// in it. '*' stands for a number, an expert's.
struct HfTensorName {
  std::string_view canonical;  // empty: the tensor says nothing that a model needs
  std::string_view hf;
  HfTransform transform = nullptr;
};

// A key of config.json whose value changes results, and what an architecture computes.
struct SupportedWords {
  std::string_view key;
  std::string_view words;  // parted by spaces
};
struct SupportedFlag {
  std::string_view key;
  bool value;
};

inline constexpr SupportedWords kSilu[] = {{"hidden_act", "silu swish"}};

struct Architecture {
  std::string_view name;  // general.architecture in GGUF
  // "architectures" in config.json: "LlamaForCausalLM". Empty: no checkpoints of Hugging Face.
  std::span<const std::string_view> hf_classes;
  // Sets what this architecture does differently. The keys that all share have been read into
  // `config` (sizes, heads, RoPE 0 with the file's base and scaling, every layer full attention).
  void (*configure)(Hparams& hparams, ModelConfig& config);
  // Adds what config.json says beyond the keys that all share; null: nothing (hf_import.h).
  void (*import)(HfImport& import);
  // Names other than Llama's. A stored tensor that stands here more than once becomes several.
  std::span<const HfTensorName> hf_tensors;
  // Values of config.json that are refused by name where they are others (hf_refusals.h).
  std::span<const SupportedWords> hf_words = kSilu;
  std::span<const SupportedFlag> hf_flags{};
  bool knows_windows = true;  // false: layer_types may say full_attention only
  bool hf_has_head = true;
  // Whether the output layer is the embedding where config.json does not say.
  bool hf_ties_head_by_default = false;
};

std::span<const Architecture* const> architectures();                 // sorted by name
const Architecture* find_architecture(std::string_view name);         // nullptr: unknown
const Architecture* find_hf_architecture(std::string_view hf_class);  // the same

// The validated configuration of a checkpoint with weights. Refuses, naming the file and the key:
// missing and impossible numbers, unknown architectures, features that are not supported yet.
Result<ModelConfig> read_config(const Checkpoint& checkpoint);

}  // namespace dunlin
