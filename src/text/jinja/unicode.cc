#include "text/jinja/unicode.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include <utf8proc.h>

namespace dunlin::jinja {
namespace {

struct SpecialCase {
  char32_t c;
  const char8_t* upper;
  const char8_t* title;
};
struct Range {
  char32_t first;
  char32_t last;
};

#include "text/jinja/unicode_tables.inc"

template <std::size_t N>
bool in_ranges(const Range (&ranges)[N], char32_t c) {
  const auto* it = std::partition_point(std::begin(ranges), std::end(ranges),
                                        [&](const Range& r) { return r.last < c; });
  return it != std::end(ranges) && it->first <= c;
}

const SpecialCase* special_case(char32_t c) {
  if (c < 0xDF) return nullptr;
  const auto* it = std::partition_point(std::begin(kSpecialCases), std::end(kSpecialCases),
                                        [&](const SpecialCase& s) { return s.c < c; });
  return it != std::end(kSpecialCases) && it->c == c ? it : nullptr;
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2018 || c == 0x2019;
  }
}

// A sigma with a cased letter before it and none after it, case-ignorable characters aside.
bool is_final_sigma(std::string_view text, std::size_t offset, std::size_t size) {
  std::size_t at = offset;
  bool cased_before = false;
  while (at > 0) {
    do --at;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
    const char32_t c = decode_at(text, at).value;
    if (is_case_ignorable(c)) continue;
    cased_before = is_cased(c);
    break;
  }
  if (!cased_before) return false;
  for (at = offset + size; at < text.size();) {
    const CodePoint c = decode_at(text, at);
    at += c.size;
    if (!is_case_ignorable(c.value)) return !is_cased(c.value);
  }
  return true;
}

}  // namespace

bool valid_utf8(std::string_view text) {
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto* end = at + text.size();
  while (at < end) {
    if (*at < 0x80) {
      ++at;
      continue;
    }
    utf8proc_int32_t c = 0;
    const utf8proc_ssize_t size = utf8proc_iterate(at, end - at, &c);
    if (size < 1) return false;
    at += size;
  }
  return true;
}

std::size_t count_code_points(std::string_view utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

CodePoint decode_at(std::string_view utf8, std::size_t offset) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(utf8[offset + i]));
  };
  const std::size_t size = std::min(sequence_length(utf8[offset]), utf8.size() - offset);
  switch (size) {
    case 2: return {(byte(0) & 0x1F) << 6 | (byte(1) & 0x3F), 2};
    case 3: return {(byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
    case 4:
      return {(byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 |
                  (byte(3) & 0x3F),
              4};
    default: return {byte(0), 1};
  }
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

bool is_space(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_alpha(char32_t c) {
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool is_digit(char32_t c) { return is_decimal(c) || in_ranges(kDigitsNotDecimal, c); }
bool is_numeric(char32_t c) {
  const auto k = category(c);
  return (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO) || in_ranges(kNumericNotN, c);
}
bool is_lower(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL || in_ranges(kOtherLower, c);
}
bool is_upper(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU || in_ranges(kOtherUpper, c);
}
bool is_title(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }
bool is_cased(char32_t c) { return is_lower(c) || is_upper(c) || is_title(c); }

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
  }
}

bool is_identifier_start(char32_t c) {
  return c == '_' || is_alpha(c) || category(c) == UTF8PROC_CATEGORY_NL;
}

bool is_identifier_part(char32_t c) {
  if (is_identifier_start(c)) return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC: return true;
    default: return false;
  }
}

void append_upper(std::string& out, char32_t c) {
  if (const SpecialCase* special = special_case(c)) {
    out += reinterpret_cast<const char*>(special->upper);
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<int>(c))));
  }
}

void append_title(std::string& out, char32_t c) {
  if (const SpecialCase* special = special_case(c)) {
    out += reinterpret_cast<const char*>(special->title);
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_totitle(static_cast<int>(c))));
  }
}

void append_folded(std::string& out, char32_t c) {
  utf8proc_int32_t folded[8];
  int last_class = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(c), folded, std::size(folded), UTF8PROC_CASEFOLD, &last_class);
  if (count < 0 || count > static_cast<utf8proc_ssize_t>(std::size(folded))) {
    append_utf8(out, c);
    return;
  }
  for (utf8proc_ssize_t i = 0; i < count; ++i) append_utf8(out, static_cast<char32_t>(folded[i]));
}

void append_lower(std::string& out, std::string_view text, std::size_t offset, CodePoint c) {
  if (c.value == 0x130) {
    out += "i\xCC\x87";  // a dotted capital I keeps its dot
  } else if (c.value == 0x3A3) {
    append_utf8(out, is_final_sigma(text, offset, c.size) ? 0x3C2 : 0x3C3);
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<int>(c.value))));
  }
}

bool is_line_break(char32_t c) {
  return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace dunlin::jinja
