// Refuses what config.json asks for that changes a model's results and is not computed: what no
// architecture knows, and what its own file doesn't list (Architecture::hf_words, hf_flags).
// Whatever is neither imported nor refused has no effect on results.
#pragma once

#include <string_view>

#include "base/function_ref.h"
#include "formats/hf_config.h"
#include "model/registry.h"

namespace dunlin {

// Records a refusal that names the key where `config` has such a value.
void refuse_unsupported(const HfConfig& config, const Architecture& architecture);

// The same of what config.json says of tensors that some models of an architecture have and others
// lack, where the weights say otherwise: biases of the first layer, the layers that have experts,
// and, if the model needs one, an output layer of its own. has_tensor: whether a canonical name is
// there.
void refuse_contradictions(const HfConfig& config, bool needs_head,
                           FunctionRef<bool(std::string_view name)> has_tensor);

}  // namespace dunlin
