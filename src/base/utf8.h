// UTF-8 (RFC 3629): checking, decoding, encoding, repair. Surrogates, overlong forms and code
// points above U+10FFFF are broken.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace dunlin {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

enum class Utf8State {
  kValid,       // a whole character
  kBroken,      // can't become one, whatever follows
  kIncomplete,  // the text ends inside what may still become one
};

struct Utf8Char {
  char32_t code_point;  // kReplacementCharacter unless kValid
  int num_bytes;        // > 0. Broken: the longest start of a character that was still right, or 1
                        // (Unicode 15, section 3.9, "maximal subpart"), so that one U+FFFD stands
                        // for it, as in Python's and Rust's lossy decoding
  Utf8State state;
};

// The character at `pos`, which must be below text.size().
Utf8Char decode_utf8(std::string_view text, std::size_t pos);

// Bytes of the character that starts with `lead` in valid UTF-8.
inline int utf8_length(unsigned char lead) {
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}
// The code point at `text` [utf8_length(text[0])], which must be valid UTF-8.
char32_t decode_valid_utf8(const char* text);

bool is_ascii(std::string_view text);

// Offset of the first byte that is not part of a whole character; text.size() where all is valid.
std::size_t find_broken_utf8(std::string_view text);

// `code_point` must be a Unicode scalar value.
void append_utf8(std::string& out, char32_t code_point);

// `text` with U+FFFD for each broken or incomplete part.
std::string repair_utf8(std::string_view text);

}  // namespace dunlin
