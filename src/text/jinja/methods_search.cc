// str's methods that look for text, cut at it or take it away.
#include <algorithm>
#include <optional>

#include "text/jinja/builtins.h"
#include "text/jinja/compare.h"
#include "text/jinja/text_ops.h"
#include "text/jinja/unicode.h"

namespace dunlin::jinja {
namespace {

const Str& must_be_text(const Value& value) {
  if (!value.is_string()) fault("must be str, not " + std::string(type_name(value)));
  return value.str();
}

// The optional text argument `i`: null where it is absent or None.
const Str* optional_text(const Args& args, std::size_t i) {
  return args.has(i) && !args.pos[i].is_none() ? &must_be_text(args.pos[i]) : nullptr;
}

std::size_t limit_of(const Args& args, std::size_t i) {
  if (!args.has(i) || to_index(args.pos[i]) < 0) return kNoLimit;
  return to_size(args.pos[i]);
}

// Bytes [begin, end) that the arguments start and end (at `i` and `i + 1`) leave; nothing where
// start lies past the end.
struct Window {
  std::size_t begin, end;
};
std::optional<Window> window(const Args& args, std::size_t i) {
  const Str& s = args.pos[0].str();
  const Int length = static_cast<Int>(s.length());
  const auto at = [&](std::size_t index, Int otherwise) {
    if (!args.has(index) || args.pos[index].is_none()) return otherwise;
    Int n = to_index(args.pos[index]);
    if (n < 0) n = std::max<Int>(0, n + length);
    return n;
  };
  const Int begin = at(i, 0);
  const Int end = std::min(at(i + 1, length), length);
  if (begin > end || begin > length) return std::nullopt;
  return Window{s.offset_of(static_cast<std::size_t>(begin)),
                s.offset_of(static_cast<std::size_t>(end))};
}

std::size_t locate(Runtime& runtime, const Args& args, bool last) {
  const Str& needle = must_be_text(args.pos[1]);
  const auto part = window(args, 2);
  if (!part) return kNowhere;
  const std::string_view hay = std::string_view(args.pos[0].text()).substr(0, part->end);
  if (!last) return find_text(runtime.budget(), hay, needle.text(), part->begin);
  const std::size_t found = find_last_text(runtime.budget(), hay.substr(part->begin), needle.text(),
                                           part->end - part->begin);
  return found == kNowhere ? kNowhere : found + part->begin;
}

template <bool last, bool must>
Value find(Runtime& runtime, Args& args) {
  const std::size_t at = locate(runtime, args, last);
  if (at == kNowhere) {
    if (must) fault("substring not found");
    return Value::integer(-1);
  }
  return Value::integer(static_cast<Int>(args.pos[0].str().index_of(at)));
}

Value count(Runtime& runtime, Args& args) {
  const Str& needle = must_be_text(args.pos[1]);
  const auto part = window(args, 2);
  if (!part) return Value::integer(0);
  const std::string_view hay = std::string_view(args.pos[0].text()).substr(0, part->end);
  if (needle.text().empty()) {
    return Value::integer(static_cast<Int>(count_code_points(hay.substr(part->begin)) + 1));
  }
  Int found = 0;
  std::size_t at = part->begin;
  while ((at = find_text(runtime.budget(), hay, needle.text(), at)) != kNowhere) {
    ++found;
    at += needle.text().size();
  }
  return Value::integer(found);
}

template <bool at_end>
Value has_affix(Runtime& runtime, Args& args) {
  const auto part = window(args, 2);
  const auto fits = [&](const Value& affix) {
    const std::string& text = must_be_text(affix).text();
    if (!part || text.size() > part->end - part->begin) return false;
    runtime.budget().scan(text.size());
    const std::size_t at = at_end ? part->end - text.size() : part->begin;
    return args.pos[0].text().compare(at, text.size(), text) == 0;
  };
  if (const auto* tuple = args.pos[1].as<Tuple>()) {
    return Value::boolean(std::any_of(tuple->items().begin(), tuple->items().end(), fits));
  }
  if (!args.pos[1].is_string()) {
    fault(std::string(at_end ? "endswith" : "startswith") +
          " first arg must be str or a tuple of str, not " + std::string(type_name(args.pos[1])));
  }
  return Value::boolean(fits(args.pos[1]));
}

template <Side side>
Value stripped(Runtime& runtime, Args& args) {
  return Value::string(
      strip(runtime.budget(), args.pos[0].str_ptr(), optional_text(args, 1), side));
}

Value split_method(Runtime& runtime, Args& args) {
  return runtime.list(
      split(runtime, args.pos[0].str_ptr(), optional_text(args, 1), limit_of(args, 2)));
}

Value rsplit_method(Runtime& runtime, Args& args) {
  return runtime.list(
      split_from_right(runtime, args.pos[0].str_ptr(), optional_text(args, 1), limit_of(args, 2)));
}

Value splitlines(Runtime& runtime, Args& args) {
  std::vector<Value> lines;
  const bool keep = args.has(1) && runtime.truthy(args.pos[1]);
  for (StrPtr& line : split_lines(runtime.budget(), args.pos[0].str_ptr(), keep)) {
    lines.push_back(Value::string(std::move(line)));
  }
  return runtime.list(std::move(lines));
}

template <bool last>
Value partition(Runtime& runtime, Args& args) {
  const StrPtr& s = args.pos[0].str_ptr();
  const Str& separator = must_be_text(args.pos[1]);
  if (separator.text().empty()) fault("empty separator");
  Budget& budget = runtime.budget();
  const std::size_t at = last
                             ? find_last_text(budget, s->text(), separator.text(), s->text().size())
                             : find_text(budget, s->text(), separator.text(), 0);
  if (at == kNowhere) {
    const Value empty = runtime.str("");
    return last ? runtime.tuple({empty, empty, args.pos[0]})
                : runtime.tuple({args.pos[0], empty, empty});
  }
  const std::size_t after = at + separator.text().size();
  return runtime.tuple({Value::string(substr(budget, s, 0, at)),
                        Value::string(substr(budget, s, at, after)),
                        Value::string(substr(budget, s, after, s->text().size()))});
}

Value replace_method(Runtime& runtime, Args& args) {
  const StrPtr& s = args.pos[0].str_ptr();
  must_be_text(args.pos[1]);
  must_be_text(args.pos[2]);
  const bool markup = s->markup();
  const StrPtr old_text = markup ? escape_html(runtime, args.pos[1]) : args.pos[1].str_ptr();
  const StrPtr new_text = markup ? escape_html(runtime, args.pos[2]) : args.pos[2].str_ptr();
  return Value::string(replace(runtime.budget(), s, *old_text, *new_text, limit_of(args, 3)));
}

template <bool at_end>
Value without_affix(Runtime& runtime, Args& args) {
  const StrPtr& s = args.pos[0].str_ptr();
  const std::string& affix = must_be_text(args.pos[1]).text();
  const std::size_t size = s->text().size();
  const bool there = at_end ? s->text().ends_with(affix) : s->text().starts_with(affix);
  if (!there) return args.pos[0];
  return Value::string(at_end ? substr(runtime.budget(), s, 0, size - affix.size())
                              : substr(runtime.budget(), s, affix.size(), size));
}

constexpr Builtin kMethods[] = {
    {"count", "self sub start end", 2, count},
    {"endswith", "self suffix start end", 2, has_affix<true>},
    {"find", "self sub start end", 2, find<false, false>},
    {"index", "self sub start end", 2, find<false, true>},
    {"lstrip", "self chars", 1, stripped<kLeft>},
    {"partition", "self sep", 2, partition<false>},
    {"removeprefix", "self prefix", 2, without_affix<false>},
    {"removesuffix", "self suffix", 2, without_affix<true>},
    {"replace", "self old new count", 3, replace_method},
    {"rfind", "self sub start end", 2, find<true, false>},
    {"rindex", "self sub start end", 2, find<true, true>},
    {"rpartition", "self sep", 2, partition<true>},
    {"rsplit", "self sep maxsplit", 1, rsplit_method},
    {"rstrip", "self chars", 1, stripped<kRight>},
    {"split", "self sep maxsplit", 1, split_method},
    {"splitlines", "self keepends", 1, splitlines},
    {"startswith", "self prefix start end", 2, has_affix<false>},
    {"strip", "self chars", 1, stripped<kBoth>},
};

}  // namespace

std::span<const Builtin> search_methods() { return kMethods; }

}  // namespace dunlin::jinja
