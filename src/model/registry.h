// The table of architectures. Adding one takes one file and one row (docs/adding-a-model.md).
#pragma once

#include <span>
#include <string_view>

#include "dunlin/status.h"
#include "formats/gguf.h"
#include "model/config.h"
#include "model/gguf_hparams.h"

namespace dunlin {

struct Architecture {
  std::string_view name;  // general.architecture in GGUF
  // Sets what this architecture does differently. The keys that all share have been read into
  // `config` (sizes, heads, RoPE 0 with the file's base and scaling, every layer full attention).
  void (*configure)(GgufHparams& hparams, ModelConfig& config);
};

std::span<const Architecture> architectures();
const Architecture* find_architecture(std::string_view name);  // nullptr: unknown

// The validated configuration of a GGUF file with weights. Refuses, naming the file and the key:
// missing and impossible numbers, unknown architectures, features that are not supported yet.
Result<ModelConfig> config_from_gguf(const GgufFile& file);

}  // namespace dunlin
