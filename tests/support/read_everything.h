// Reads every value and both ends of every tensor of parsed GGUF contents, so that a sanitizer
// sees a view that leaves the file. Aborts where a promise of the parser is broken.
#pragma once

#include <cstdint>
#include <span>

#include "base/check.h"
#include "formats/gguf_parse.h"

namespace dunlin {

inline std::uint64_t read_text(std::string_view text) {
  std::uint64_t sum = 0;
  for (const char c : text) sum += static_cast<unsigned char>(c);
  return sum;
}

inline std::uint64_t read_array(const GgufArray& array) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < array.size(); ++i) {
    switch (array.element_type()) {
      case GgufType::kString: sum += read_text(array.string(i)); break;
      case GgufType::kBool: sum += array.boolean(i); break;
      default: sum += array.number(i) > 0;
    }
  }
  return sum;
}

// A sum of what was read, for the caller to keep, so that the reads stay in the program.
inline std::uint64_t read_everything(const GgufContents& contents,
                                     std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  for (const GgufEntry& entry : contents.entries) {
    DUNLIN_CHECK(!entry.key.empty(), "an empty key was accepted");
    switch (entry.type) {
      case GgufType::kString: sum += read_text(entry.string()); break;
      case GgufType::kArray: sum += read_array(entry.array()); break;
      case GgufType::kBool: sum += entry.boolean(); break;
      default: sum += entry.number() > 0;
    }
  }
  for (const GgufTensor& tensor : contents.tensors) {
    const std::int64_t size = tensor.view.size_bytes();
    DUNLIN_CHECK(size > 0 && tensor.view.data >= bytes.data() &&
                     size <= bytes.data() + bytes.size() - tensor.view.data,
                 "a tensor outside the file was accepted");
    sum += std::to_integer<unsigned>(tensor.view.data[0]) +
           std::to_integer<unsigned>(tensor.view.data[size - 1]);
  }
  return sum;
}

}  // namespace dunlin
