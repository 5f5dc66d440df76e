// Tensor types as GGUF numbers them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace dunlin {

std::optional<DType> dtype_of_gguf_number(std::uint32_t number);  // nullopt: not supported
std::string_view gguf_number_name(std::uint32_t number);          // "" where nobody uses it
std::uint32_t gguf_number_of(DType dtype);

}  // namespace dunlin
