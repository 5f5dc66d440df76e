#include "base/utf8.h"

#include <cstdint>
#include <cstring>

namespace dunlin {
namespace {

// How a character that starts with some byte goes on. Only the second byte's range depends on the
// first: it is what rules out overlong forms, surrogates and what is above U+10FFFF.
struct LeadByte {
  int num_bytes;  // 0: no character starts so
  unsigned char second_min;
  unsigned char second_max;
};

LeadByte lead_byte(unsigned char c) {
  if (c < 0x80) return {1, 0, 0};
  if (c < 0xC2 || c > 0xF4) return {0, 0, 0};
  if (c < 0xE0) return {2, 0x80, 0xBF};
  if (c < 0xF0) {
    return {3, static_cast<unsigned char>(c == 0xE0 ? 0xA0 : 0x80),
            static_cast<unsigned char>(c == 0xED ? 0x9F : 0xBF)};
  }
  return {4, static_cast<unsigned char>(c == 0xF0 ? 0x90 : 0x80),
          static_cast<unsigned char>(c == 0xF4 ? 0x8F : 0xBF)};
}

// The first byte at or after `pos` that is not ASCII.
std::size_t skip_ascii(std::string_view text, std::size_t pos) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080u;
  for (; pos + 8 <= text.size(); pos += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + pos, 8);
    if ((word & kHighBits) != 0) break;
  }
  while (pos < text.size() && static_cast<unsigned char>(text[pos]) < 0x80) ++pos;
  return pos;
}

}  // namespace

Utf8Char decode_utf8(std::string_view text, std::size_t pos) {
  const auto byte = [&](std::size_t idx) { return static_cast<unsigned char>(text[idx]); };
  // Most of what is not ASCII: Latin, Greek, Cyrillic, Hebrew, Arabic.
  if (pos + 1 < text.size() && byte(pos) >= 0xC2 && byte(pos) < 0xE0 &&
      (byte(pos + 1) & 0xC0) == 0x80) {
    return {static_cast<char32_t>((byte(pos) & 0x1Fu) << 6 | (byte(pos + 1) & 0x3Fu)), 2,
            Utf8State::kValid};
  }
  const LeadByte lead = lead_byte(byte(pos));
  if (lead.num_bytes == 0) return {kReplacementCharacter, 1, Utf8State::kBroken};
  for (int i = 1; i < lead.num_bytes; ++i) {
    const std::size_t idx = pos + static_cast<std::size_t>(i);
    if (idx >= text.size()) return {kReplacementCharacter, i, Utf8State::kIncomplete};
    const unsigned char min = i == 1 ? lead.second_min : 0x80;
    const unsigned char max = i == 1 ? lead.second_max : 0xBF;
    if (byte(idx) < min || byte(idx) > max) return {kReplacementCharacter, i, Utf8State::kBroken};
  }
  return {decode_valid_utf8(text.data() + pos), lead.num_bytes, Utf8State::kValid};
}

char32_t decode_valid_utf8(const char* text) {
  const auto bits = [&](int idx, unsigned mask) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[idx]) & mask);
  };
  switch (utf8_length(static_cast<unsigned char>(text[0]))) {
    case 1: return bits(0, 0x7F);
    case 2: return bits(0, 0x1F) << 6 | bits(1, 0x3F);
    case 3: return bits(0, 0x0F) << 12 | bits(1, 0x3F) << 6 | bits(2, 0x3F);
    default: return bits(0, 0x07) << 18 | bits(1, 0x3F) << 12 | bits(2, 0x3F) << 6 | bits(3, 0x3F);
  }
}

bool is_ascii(std::string_view text) { return skip_ascii(text, 0) == text.size(); }

std::size_t find_broken_utf8(std::string_view text) {
  std::size_t pos = 0;
  while ((pos = skip_ascii(text, pos)) < text.size()) {
    const Utf8Char c = decode_utf8(text, pos);
    if (c.state != Utf8State::kValid) return pos;
    pos += static_cast<std::size_t>(c.num_bytes);
  }
  return pos;
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto put = [&](char32_t value) { out.push_back(static_cast<char>(value)); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
  } else {
    if (code_point < 0x10000) {
      put(0xE0 | code_point >> 12);
    } else {
      put(0xF0 | code_point >> 18);
      put(0x80 | (code_point >> 12 & 0x3F));
    }
    put(0x80 | (code_point >> 6 & 0x3F));
  }
  put(0x80 | (code_point & 0x3F));
}

std::string repair_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t pos = 0; pos < text.size();) {
    const std::size_t broken = pos + find_broken_utf8(text.substr(pos));
    out.append(text.substr(pos, broken - pos));
    if (broken == text.size()) break;
    append_utf8(out, kReplacementCharacter);
    pos = broken + static_cast<std::size_t>(decode_utf8(text, broken).num_bytes);
  }
  return out;
}

}  // namespace dunlin
