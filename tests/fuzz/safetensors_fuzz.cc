// Any bytes as a safetensors file: refused with a message of one line, or every byte of every
// tensor can be read.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "formats/safetensors_parse.h"

namespace {
volatile unsigned sink;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto tensors = dunlin::parse_safetensors(bytes, "f");
  if (!tensors) {
    const std::string& message = tensors.error().message();
    DUNLIN_CHECK(message.starts_with("f: ") && message.find('\n') == std::string::npos,
                 "a refusal is one line that names the file");
    return 0;
  }
  for (const dunlin::SafetensorsTensor& tensor : *tensors) {
    if (!tensor.readable) continue;
    unsigned sum = 0;
    for (std::int64_t i = 0; i < tensor.view.size_bytes(); ++i)
      sum += std::to_integer<unsigned>(tensor.view.data[i]);
    sink = sum;
  }
  return 0;
}
