#include "text/hf_unicode_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/utf8.h"
#include "text/hf_unicode.h"
#include "text/normalized_writer.h"

namespace dunlin::hf {
namespace {

int combining_class(int c) {
  const int stated = utf8proc_get_property(c)->combining_class;
  return stated != 0 && is_newer_mark(static_cast<char32_t>(c)) ? 0 : stated;
}

// Marks between starters in ascending class, equal ones as they were. By sorting: utf8proc's own
// exchange of neighbours is quadratic in the length of a run.
void order_marks(std::vector<int>& code_points) {
  const auto is_starter = [](int c) { return combining_class(c) == 0; };
  for (auto begin = code_points.begin(); begin != code_points.end();) {
    begin = std::find_if_not(begin, code_points.end(), is_starter);
    const auto end = std::find_if(begin, code_points.end(), is_starter);
    std::stable_sort(begin, end,
                     [](int a, int b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

std::size_t skip_ascii(std::string_view text, std::size_t pos) {
  while (pos < text.size() && static_cast<unsigned char>(text[pos]) < 0x80) ++pos;
  return pos;
}

// Behind the character at `pos` and those that may combine with it: up to ASCII or a mark that is
// none to the reference.
std::size_t end_of_chunk(std::string_view text, std::size_t pos) {
  do {
    pos += static_cast<std::size_t>(utf8_length(static_cast<unsigned char>(text[pos])));
  } while (pos < text.size() && static_cast<unsigned char>(text[pos]) >= 0x80 &&
           !is_newer_mark(decode_valid_utf8(text.data() + pos)));
  return pos;
}

}  // namespace

void UnicodeForm::decompose(std::string_view chunk, std::vector<int>& code_points) const {
  code_points.clear();
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                      (compatibility_ ? UTF8PROC_COMPAT : 0));
  for (std::size_t pos = 0; pos < chunk.size();) {
    const auto c = static_cast<int>(decode_valid_utf8(chunk.data() + pos));
    pos += static_cast<std::size_t>(utf8_length(static_cast<unsigned char>(chunk[pos])));
    if (c < 0x80 || is_newer_decomposition(static_cast<char32_t>(c))) {
      code_points.push_back(c);
      continue;
    }
    utf8proc_int32_t parts[32];
    int boundary = 0;
    const auto count = utf8proc_decompose_char(c, parts, std::size(parts), options, &boundary);
    DUNLIN_CHECK(count > 0 && count <= static_cast<utf8proc_ssize_t>(std::size(parts)),
                 "no character has more than 18 parts");
    code_points.insert(code_points.end(), parts, parts + count);
  }
  order_marks(code_points);
}

void UnicodeForm::apply(NormalizedText& text, ByteRegex::Scratch&) const {
  if (is_ascii(text.text)) return;
  NormalizedWriter writer(text);
  const std::string_view source = writer.source();
  std::vector<int> code_points;
  std::string normalized;
  // In chunks that begin with a character which combines with none before it.
  for (std::size_t pos = 0;;) {
    const std::size_t first = skip_ascii(source, pos);
    if (first == source.size()) break;
    const std::size_t begin = first > pos ? first - 1 : first;
    const std::size_t end = end_of_chunk(source, first);
    const std::string_view chunk = source.substr(begin, end - begin);
    decompose(chunk, code_points);
    auto size = static_cast<utf8proc_ssize_t>(code_points.size());
    if (compose_) {
      size = utf8proc_normalize_utf32(
          code_points.data(), size,
          static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));  // NOLINT: flags
    }
    normalized.clear();
    for (utf8proc_ssize_t i = 0; i < size; ++i) {
      append_utf8(normalized, static_cast<char32_t>(code_points[static_cast<std::size_t>(i)]));
    }
    writer.copy_until(begin);
    if (normalized == chunk) {
      writer.copy_until(end);
    } else {
      writer.replace_until(end, normalized);
    }
    pos = end;
  }
  writer.finish();
}

}  // namespace dunlin::hf
