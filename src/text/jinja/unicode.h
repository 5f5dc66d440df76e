// What Python's str knows about characters, over utf8proc (Unicode 14, as Python 3.11).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dunlin::jinja {

bool valid_utf8(std::string_view text);
std::size_t count_code_points(std::string_view utf8);

// Bytes of the sequence that starts with `lead`; 1 for anything that is no lead byte.
inline std::size_t sequence_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

struct CodePoint {
  char32_t value;
  std::size_t size;  // bytes
};
CodePoint decode_at(std::string_view utf8, std::size_t offset);
void append_utf8(std::string& out, char32_t c);

bool is_space(char32_t c);  // str.isspace, and \s of re
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_lower(char32_t c);
bool is_upper(char32_t c);
bool is_title(char32_t c);
bool is_cased(char32_t c);
bool is_printable(char32_t c);
bool is_identifier_start(char32_t c);
bool is_identifier_part(char32_t c);

// Full mappings of one character (one may become three, as in Unicode's SpecialCasing).
void append_upper(std::string& out, char32_t c);
void append_title(std::string& out, char32_t c);
void append_folded(std::string& out, char32_t c);
// Lower case of the character at `offset` of `text`: a sigma that ends a word becomes final.
void append_lower(std::string& out, std::string_view text, std::size_t offset, CodePoint c);

// Python's universal line ends of str.splitlines.
bool is_line_break(char32_t c);

}  // namespace dunlin::jinja
