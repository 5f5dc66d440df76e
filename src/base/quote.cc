#include "base/quote.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace dunlin {

std::string quote_for_message(std::string_view text, std::size_t max_bytes) {
  std::string out = "'";
  std::size_t at = 0;
  while (at < text.size() && at < max_bytes) {
    const Utf8Char next = decode_utf8(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    if (next.state != Utf8State::kValid || byte < 0x20 || byte == 0x7F || byte == '\'' ||
        byte == '\\') {
      out += fmt::format("\\x{:02x}", byte);
      ++at;
    } else {
      out += text.substr(at, static_cast<std::size_t>(next.num_bytes));
      at += static_cast<std::size_t>(next.num_bytes);
    }
  }
  return out + (at < text.size() ? "'..." : "'");
}

}  // namespace dunlin
