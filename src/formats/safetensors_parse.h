// One safetensors file's bytes to its table. Pure: no file access, so that it can be fuzzed.
//
// A file is the size of its header (8 bytes, little-endian), the header as a JSON object
// {"NAME": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [begin, end]}, ...}, and the tensors'
// bytes, which the offsets count from. Hugging Face, "safetensors: format", 2022.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dunlin/status.h"
#include "tensor/tensor_view.h"

namespace dunlin {

// The format's own limit; the header of a model with 100,000 tensors has some 15 MB.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;

struct SafetensorsTensor {
  std::string name;
  std::string stored_type;  // as the file says: "BF16", "F8_E4M3"
  // False: of a type, rank or size that no weight of a model here has (masks, scalars of other
  // types); `view` is empty then, but for types of one byte, whose bytes it has as I8.
  bool readable = true;
  TensorView view;
};

// The tensors in the order of their bytes. Refused, with a message that names the file and the
// tensor: what is no header, unknown types, sizes that don't follow from shape and type, ranges
// that lie outside of the file, overlap, or leave bytes between them, names that come twice.
Result<std::vector<SafetensorsTensor>> parse_safetensors(std::span<const std::byte> bytes,
                                                         std::string_view path);

}  // namespace dunlin
