// Any bytes as a GGUF file: refused with a message of one line, or every value and the ends of
// every tensor can be read.
#include <cstdlib>
#include <string>

#include "formats/gguf_parse.h"

namespace {

volatile std::uint64_t sink;

void require(bool condition) {
  if (!condition) std::abort();
}

void read_array(const dunlin::GgufArray& array) {
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (array.element_type() == dunlin::GgufType::kString) {
      for (const char c : array.string(i)) sink = sink + static_cast<unsigned char>(c);
    } else if (array.element_type() == dunlin::GgufType::kBool) {
      sink = sink + array.boolean(i);
    } else {
      sink = sink + (array.number(i) > 0);
    }
  }
}

void read_entry(const dunlin::GgufEntry& entry) {
  require(!entry.key.empty());
  switch (entry.type) {
    case dunlin::GgufType::kString:
      for (const char c : entry.string()) sink = sink + static_cast<unsigned char>(c);
      break;
    case dunlin::GgufType::kArray: read_array(entry.array()); break;
    case dunlin::GgufType::kBool: sink = sink + entry.boolean(); break;
    default: sink = sink + (entry.number() > 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto contents = dunlin::parse_gguf(bytes, "f");
  if (!contents) {
    require(contents.error().message().starts_with("f: "));
    require(contents.error().message().find('\n') == std::string::npos);
    return 0;
  }
  for (const dunlin::GgufEntry& entry : contents->entries) read_entry(entry);
  for (const dunlin::GgufTensor& tensor : contents->tensors) {
    const std::int64_t num_bytes = tensor.view.size_bytes();
    require(num_bytes > 0 && static_cast<std::uint64_t>(num_bytes) <= size);
    sink = sink + std::to_integer<unsigned>(tensor.view.data[0]) +
           std::to_integer<unsigned>(tensor.view.data[num_bytes - 1]);
  }
  return 0;
}
