// Any bytes as a GGUF file: refused with a message of one line, or all of it can be read.
#include <string>

#include "support/read_everything.h"

namespace {
volatile std::uint64_t sink;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto contents = dunlin::parse_gguf(bytes, "f");
  if (contents) {
    sink = dunlin::read_everything(*contents, bytes);
    return 0;
  }
  const std::string& message = contents.error().message();
  DUNLIN_CHECK(message.starts_with("f: ") && message.find('\n') == std::string::npos,
               "a refusal is one line that names the file");
  return 0;
}
