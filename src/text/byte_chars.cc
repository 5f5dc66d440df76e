#include "text/byte_chars.h"

#include <array>
#include <cstdint>

#include "base/utf8.h"

namespace dunlin {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}
constexpr unsigned kNumMoved = 68;

// Byte of each code point below 0x100 + kNumMoved; -1: none.
constexpr auto kByteOf = [] {
  std::array<std::int16_t, 0x100 + kNumMoved> table{};
  unsigned moved = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    table[byte] = stands_for_itself(byte) ? static_cast<std::int16_t>(byte) : std::int16_t{-1};
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (!stands_for_itself(byte)) table[0x100 + moved++] = static_cast<std::int16_t>(byte);
  }
  return table;
}();

}  // namespace

bool append_bytes_of_chars(std::string_view chars, std::string& out) {
  const std::size_t before = out.size();
  out.resize(before + chars.size());
  char* next = out.data() + before;
  for (std::size_t pos = 0; pos < chars.size();) {
    const auto lead = static_cast<unsigned char>(chars[pos]);
    char32_t c = lead;
    if (lead < 0x80) {
      ++pos;
    } else {
      const Utf8Char decoded = decode_utf8(chars, pos);
      c = decoded.code_point;  // U+FFFD where broken, which is no byte's character
      pos += static_cast<std::size_t>(decoded.num_bytes);
    }
    if (c >= kByteOf.size() || kByteOf[c] < 0) {
      out.resize(before);
      return false;
    }
    *next++ = static_cast<char>(kByteOf[c]);
  }
  out.resize(static_cast<std::size_t>(next - out.data()));
  return true;
}

std::string char_of_byte(unsigned char byte) {
  std::string out;
  for (char32_t c = 0; c < kByteOf.size(); ++c) {
    if (kByteOf[c] == byte) append_utf8(out, c);
  }
  return out;
}

}  // namespace dunlin
