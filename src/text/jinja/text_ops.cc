#include "text/jinja/text_ops.h"

#include <algorithm>
#include <cstring>

#include "text/jinja/builtins.h"
#include "text/jinja/compare.h"
#include "text/jinja/unicode.h"

namespace dunlin::jinja {
namespace {

std::size_t previous(std::string_view text, std::size_t at) {
  do --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const CodePoint c = decode_at(text, at);
    if (!is_space(c.value)) break;
    at += c.size;
  }
  return at;
}

std::size_t skip_word(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const CodePoint c = decode_at(text, at);
    if (is_space(c.value)) break;
    at += c.size;
  }
  return at;
}

// Back over whitespace (or over a word), from `at`.
std::size_t skip_back(std::string_view text, std::size_t at, bool space) {
  while (at > 0) {
    const std::size_t before = previous(text, at);
    if (is_space(decode_at(text, before).value) != space) break;
    at = before;
  }
  return at;
}

Value piece(Runtime& runtime, const StrPtr& s, std::size_t begin, std::size_t end) {
  return Value::string(substr(runtime.budget(), s, begin, end));
}

void append_swapped(std::string& out, std::string_view text, std::size_t at, CodePoint c) {
  if (is_upper(c.value)) {
    append_lower(out, text, at, c);
  } else if (is_lower(c.value)) {
    append_upper(out, c.value);
  } else {
    append_utf8(out, c.value);
  }
}

}  // namespace

std::size_t find_text(Budget& budget, std::string_view hay, std::string_view needle,
                      std::size_t from) {
  if (from > hay.size()) return kNowhere;
  const void* found = memmem(hay.data() + from, hay.size() - from, needle.data(), needle.size());
  const std::size_t at =
      found != nullptr ? static_cast<std::size_t>(static_cast<const char*>(found) - hay.data())
                       : kNowhere;
  budget.scan((at == kNowhere ? hay.size() : at) - from + needle.size());
  return at;
}

std::size_t find_last_text(Budget& budget, std::string_view hay, std::string_view needle,
                           std::size_t end) {
  // memmem is linear, rfind is not: search backwards in a mirror image.
  const std::string mirror(hay.rend() - static_cast<std::ptrdiff_t>(end), hay.rend());
  const std::string mirrored_needle(needle.rbegin(), needle.rend());
  const std::size_t at = find_text(budget, mirror, mirrored_needle, 0);
  return at == kNowhere ? kNowhere : end - at - needle.size();
}

StrPtr change_case(Budget& budget, const StrPtr& s, Case how) {
  const std::string& text = s->text();
  StrBuilder out(budget);
  bool in_word = false;
  std::string mapped;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_at(text, at);
    mapped.clear();
    switch (how) {
      case Case::kUpper: append_upper(mapped, c.value); break;
      case Case::kLower: append_lower(mapped, text, at, c); break;
      case Case::kFold: append_folded(mapped, c.value); break;
      case Case::kSwap: append_swapped(mapped, text, at, c); break;
      case Case::kTitle:
        in_word ? append_lower(mapped, text, at, c) : append_title(mapped, c.value);
        in_word = is_cased(c.value);
        break;
      case Case::kCapital:
        at == 0 ? append_title(mapped, c.value) : append_lower(mapped, text, at, c);
        break;
    }
    out.append_mapped(*s, at, at + c.size, mapped);
    at += c.size;
  }
  return out.finish(s->markup());
}

StrPtr strip(Budget& budget, const StrPtr& s, const Str* chars, Side side) {
  const std::string& text = s->text();
  budget.scan(text.size());
  const auto goes = [&](char32_t c, std::string_view bytes) {
    if (chars == nullptr) return is_space(c);
    budget.scan(chars->text().size());
    return chars->text().find(bytes) != std::string::npos;
  };
  std::size_t begin = 0;
  std::size_t end = text.size();
  while ((side & kLeft) != 0 && begin < end) {
    const CodePoint c = decode_at(text, begin);
    if (!goes(c.value, std::string_view(text).substr(begin, c.size))) break;
    begin += c.size;
  }
  while ((side & kRight) != 0 && end > begin) {
    const std::size_t last = previous(text, end);
    if (!goes(decode_at(text, last).value, std::string_view(text).substr(last, end - last))) break;
    end = last;
  }
  return substr(budget, s, begin, end);
}

std::vector<Value> split(Runtime& runtime, const StrPtr& s, const Str* separator,
                         std::size_t limit) {
  const std::string& text = s->text();
  std::vector<Value> parts;
  if (separator == nullptr) {
    runtime.budget().scan(text.size());
    std::size_t at = skip_space(text, 0);
    while (at < text.size()) {
      const std::size_t end = parts.size() == limit ? text.size() : skip_word(text, at);
      parts.push_back(piece(runtime, s, at, end));
      at = skip_space(text, end);
    }
    return parts;
  }
  if (separator->text().empty()) fault("empty separator");
  std::size_t begin = 0;
  while (parts.size() < limit) {
    const std::size_t at = find_text(runtime.budget(), text, separator->text(), begin);
    if (at == kNowhere) break;
    parts.push_back(piece(runtime, s, begin, at));
    begin = at + separator->text().size();
  }
  parts.push_back(piece(runtime, s, begin, text.size()));
  return parts;
}

std::vector<Value> split_from_right(Runtime& runtime, const StrPtr& s, const Str* separator,
                                    std::size_t limit) {
  const std::string& text = s->text();
  std::vector<Value> parts;
  if (separator == nullptr) {
    runtime.budget().scan(text.size());
    std::size_t end = skip_back(text, text.size(), true);
    while (end > 0) {
      const std::size_t begin = parts.size() == limit ? 0 : skip_back(text, end, false);
      parts.push_back(piece(runtime, s, begin, end));
      end = skip_back(text, begin, true);
    }
  } else {
    if (separator->text().empty()) fault("empty separator");
    const std::string mirror(text.rbegin(), text.rend());
    const std::string needle(separator->text().rbegin(), separator->text().rend());
    std::size_t done = 0;  // bytes from the right
    while (parts.size() < limit) {
      const std::size_t at = find_text(runtime.budget(), mirror, needle, done);
      if (at == kNowhere) break;
      parts.push_back(piece(runtime, s, text.size() - at, text.size() - done));
      done = at + needle.size();
    }
    parts.push_back(piece(runtime, s, 0, text.size() - done));
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<StrPtr> split_lines(Budget& budget, const StrPtr& s, bool keep_ends) {
  const std::string& text = s->text();
  budget.scan(text.size());
  std::vector<StrPtr> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_at(text, at);
    if (!is_line_break(c.value)) {
      at += c.size;
      continue;
    }
    std::size_t next = at + c.size;
    if (c.value == '\r' && next < text.size() && text[next] == '\n') ++next;
    lines.push_back(substr(budget, s, begin, keep_ends ? next : at));
    begin = at = next;
  }
  if (begin < text.size()) lines.push_back(substr(budget, s, begin, text.size()));
  return lines;
}

StrPtr replace(Budget& budget, const StrPtr& s, const Str& old_text, const Str& new_text,
               std::size_t limit) {
  const std::string& text = s->text();
  const std::string& needle = old_text.text();
  StrBuilder out(budget);
  std::size_t begin = 0;
  for (std::size_t done = 0; done < limit; ++done) {
    if (needle.empty()) {
      out.append(new_text);
      if (begin >= text.size()) return out.finish(s->markup());
      const std::size_t size = sequence_length(text[begin]);
      out.append(*s, begin, begin + size);
      begin += size;
      continue;
    }
    const std::size_t at = find_text(budget, text, needle, begin);
    if (at == kNowhere) break;
    out.append(*s, begin, at);
    out.append(new_text);
    begin = at + needle.size();
  }
  if (begin == 0) return s;
  out.append(*s, begin, text.size());
  return out.finish(s->markup());
}

StrPtr join(Runtime& runtime, const StrPtr& separator, const Value& parts) {
  const auto source = runtime.iterate(parts);
  StrBuilder out(runtime.budget());
  std::size_t index = 0;
  for (Value part; source->next(runtime, part); ++index) {
    if (separator->markup()) part = Value::string(escape_html(runtime, part));
    if (!part.is_string()) {
      fault("sequence item " + std::to_string(index) + ": expected str instance, " +
            std::string(type_name(part)) + " found");
    }
    if (index > 0) out.append(*separator);
    out.append(part.str());
  }
  return out.finish(separator->markup());
}

}  // namespace dunlin::jinja
