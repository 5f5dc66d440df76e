#include "terminal/printable.h"

#include "base/utf8.h"

namespace dunlin::terminal {
namespace {

constexpr char32_t kControlPictures = 0x2400;  // U+2400 + c is the picture of control character c
constexpr char32_t kDelete = 0x7F;
constexpr char32_t kDeletePicture = 0x2421;

bool is_c1(char32_t c) { return c >= 0x80 && c <= 0x9F; }

// Calls use(code point) for each character, U+FFFD for broken parts.
template <typename Use>
void for_each_code_point(std::string_view text, Use use) {
  for (std::size_t pos = 0; pos < text.size();) {
    const Utf8Char next = decode_utf8(text, pos);
    use(next.code_point);
    pos += static_cast<std::size_t>(next.num_bytes);
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_code_point(text, [&out](char32_t c) {
    if (c == '\r') return;
    if (c == kDelete) {
      c = kDeletePicture;
    } else if (is_c1(c)) {
      c = kReplacementCharacter;
    } else if (c < ' ' && c != '\n' && c != '\t') {
      c += kControlPictures;
    }
    append_utf8(out, c);
  });
  return out;
}

std::string typed_text(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  char32_t previous = 0;
  for_each_code_point(bytes, [&](char32_t c) {
    const bool second_of_crlf = c == '\n' && previous == '\r';
    previous = c;
    if (c == '\r') c = '\n';
    const bool control = c < ' ' || c == kDelete || is_c1(c);
    if (second_of_crlf || (control && c != '\n' && c != '\t')) return;
    append_utf8(out, c);
  });
  return out;
}

}  // namespace dunlin::terminal
