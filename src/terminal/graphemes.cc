#include "terminal/graphemes.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"

namespace dunlin::terminal {

std::size_t next_grapheme(std::string_view text, std::size_t pos) {
  Utf8Char previous = decode_utf8(text, pos);
  pos += static_cast<std::size_t>(previous.num_bytes);
  utf8proc_int32_t state = 0;
  while (pos < text.size()) {
    const Utf8Char next = decode_utf8(text, pos);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous.code_point),
                                         static_cast<utf8proc_int32_t>(next.code_point), &state))
      break;
    pos += static_cast<std::size_t>(next.num_bytes);
    previous = next;
  }
  return pos;
}

std::size_t previous_grapheme(std::string_view text, std::size_t pos) {
  // ASCII begins a cluster: from the nearest one the clusters can be counted.
  std::size_t begin = pos - 1;
  while (begin > 0 && static_cast<unsigned char>(text[begin]) >= 0x80) --begin;
  while (true) {
    const std::size_t end = next_grapheme(text, begin);
    if (end >= pos) return begin;
    begin = end;
  }
}

int grapheme_width(std::string_view grapheme) {
  int width = 0;
  for (std::size_t pos = 0; pos < grapheme.size();) {
    const Utf8Char next = decode_utf8(grapheme, pos);
    width = std::max(width, utf8proc_charwidth(static_cast<utf8proc_int32_t>(next.code_point)));
    pos += static_cast<std::size_t>(next.num_bytes);
  }
  return width;
}

std::string_view clip_to_columns(std::string_view text, int columns) {
  int used = 0;
  for (std::size_t pos = 0; pos < text.size();) {
    const std::size_t end = next_grapheme(text, pos);
    used += grapheme_width(text.substr(pos, end - pos));
    if (used > columns) return text.substr(0, pos);
    pos = end;
  }
  return text;
}

}  // namespace dunlin::terminal
