#include "text/jinja/string_literal.h"

#include <optional>

#include "text/jinja/fault.h"
#include "text/jinja/unicode.h"

namespace dunlin::jinja {
namespace {

std::optional<char32_t> hex(std::string_view text) {
  char32_t value = 0;
  for (const char c : text) {
    const char lower = static_cast<char>(c | 0x20);
    if (c >= '0' && c <= '9') {
      value = value * 16 + static_cast<char32_t>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      value = value * 16 + static_cast<char32_t>(lower - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

bool is_octal(char c) { return c >= '0' && c <= '7'; }

std::optional<char> simple_escape(char c) {
  switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case 'a': return '\a';
    case 'b': return '\b';
    case 'f': return '\f';
    case 'v': return '\v';
    case '\\':
    case '\'':
    case '"': return c;
    default: return std::nullopt;
  }
}

}  // namespace

std::string decode_literal(std::string_view body, std::uint32_t pos) {
  std::string out;
  for (std::size_t at = 0; at < body.size();) {
    if (body[at] != '\\' || at + 1 == body.size()) {
      out += body[at++];
      continue;
    }
    const auto here = static_cast<std::uint32_t>(pos + at);
    const char kind = body[at + 1];
    at += 2;
    if (const auto c = simple_escape(kind)) {
      out += *c;
    } else if (kind == '\n') {
      continue;  // an escaped line end joins the lines
    } else if (is_octal(kind)) {
      char32_t value = static_cast<char32_t>(kind - '0');
      for (int i = 0; i < 2 && at < body.size() && is_octal(body[at]); ++i) {
        value = value * 8 + static_cast<char32_t>(body[at++] - '0');
      }
      append_utf8(out, value);
    } else if (kind == 'x' || kind == 'u' || kind == 'U') {
      const std::size_t size = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
      const auto value = at + size <= body.size() ? hex(body.substr(at, size)) : std::nullopt;
      if (!value || *value > 0x10FFFF)
        syntax_fault(here, std::string("broken \\") + kind + " escape");
      if (*value >= 0xD800 && *value < 0xE000)
        syntax_fault(here, "an escape makes half a surrogate pair");
      append_utf8(out, *value);
      at += size;
    } else if (kind == 'N') {
      syntax_fault(here, "\\N{...} escapes are not supported");
    } else {
      out += '\\';
      out += kind;
    }
  }
  return out;
}

}  // namespace dunlin::jinja
