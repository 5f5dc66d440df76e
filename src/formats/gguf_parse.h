// One GGUF file's bytes to its tables. Pure: no file access, so that it can be fuzzed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "dunlin/status.h"
#include "formats/gguf.h"

namespace dunlin {

// Stated limits; real files have some fifty keys and, at most, tens of thousands of tensors.
inline constexpr std::uint64_t kMaxGgufKeys = 1u << 16;
inline constexpr std::uint64_t kMaxGgufTensors = 1u << 20;
inline constexpr std::uint64_t kMaxGgufNameBytes = 256;  // of a tensor's name
inline constexpr std::uint64_t kMaxGgufKeyBytes = 65535;
inline constexpr std::uint64_t kMaxGgufAlignment = 1u << 20;
inline constexpr std::uint32_t kDefaultGgufAlignment = 32;

struct GgufContents {
  std::uint32_t version = 0;
  std::uint32_t alignment = kDefaultGgufAlignment;
  std::vector<GgufEntry> entries;   // keys are unique
  std::vector<GgufTensor> tensors;  // names are unique, data lies inside `bytes` and is disjoint
};

// The result points into `bytes`. `path` is only for messages.
Result<GgufContents> parse_gguf(std::span<const std::byte> bytes, std::string_view path);

// The numbers 0 to count-1 sorted by name(i), for binary search: no hash, so no input makes it
// slow.
struct NameIndex {
  std::vector<std::uint32_t> order;
  // Set where two names are equal: the later of the two.
  std::optional<std::uint32_t> duplicate;
};
NameIndex index_by_name(std::size_t count, FunctionRef<std::string_view(std::uint32_t)> name);

}  // namespace dunlin
