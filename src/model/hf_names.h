// Names of tensors in Hugging Face's checkpoints to canonical ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/registry.h"

namespace dunlin {

struct CanonicalName {
  std::string name;  // empty: ignore the tensor
  HfTransform transform = nullptr;
};

// What a stored tensor is in the model; empty where nothing says. The architecture's own names
// come before those that all share.
std::vector<CanonicalName> canonical_names(const Architecture& architecture,
                                           std::string_view hf_name);

// The layer that a stored tensor belongs to; nullopt: none.
std::optional<std::int64_t> layer_of(std::string_view hf_name);

}  // namespace dunlin
