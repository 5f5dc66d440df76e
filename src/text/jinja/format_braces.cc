// str.format and str.format_map, with Jinja's sandboxed lookups for {a.b[c]}.
#include <charconv>

#include "text/jinja/builtins.h"
#include "text/jinja/compare.h"
#include "text/jinja/unicode.h"

namespace dunlin::jinja {
namespace {

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Args& args, const Value& mapping)
      : runtime_(runtime), args_(args), mapping_(mapping) {}

  void run(const Str& format, std::size_t begin, std::size_t end, int depth, StrBuilder& out) {
    if (depth > 2) fault("Max string recursion exceeded");
    const std::string& text = format.text();
    while (begin < end) {
      const std::size_t brace = std::min(text.find_first_of("{}", begin), end);
      out.append(format, begin, brace);
      if (brace == end) return;
      if (brace + 1 < end && text[brace + 1] == text[brace]) {
        out.append(format, brace, brace + 1);
        begin = brace + 2;
        continue;
      }
      if (text[brace] == '}') fault("Single '}' encountered in format string");
      const std::size_t close = matching(text, brace, end);
      field(format, brace + 1, close, depth, out);
      begin = close + 1;
    }
  }

 private:
  static std::size_t matching(const std::string& text, std::size_t open, std::size_t end) {
    int depth = 0;
    for (std::size_t at = open; at < end; ++at) {
      if (text[at] == '{') ++depth;
      if (text[at] == '}' && --depth == 0) return at;
    }
    fault("expected '}' before end of string");
  }

  void field(const Str& format, std::size_t begin, std::size_t end, int depth, StrBuilder& out) {
    const std::string& text = format.text();
    std::size_t name_end = begin;
    int brackets = 0;
    for (; name_end < end; ++name_end) {
      const char c = text[name_end];
      if (c == '[') ++brackets;
      if (c == ']' && brackets > 0) --brackets;
      if (brackets == 0 && (c == ':' || c == '!')) break;
    }
    Value value = lookup(std::string_view(text).substr(begin, name_end - begin));
    std::size_t at = name_end;
    if (at < end && text[at] == '!') {
      if (at + 1 >= end) fault("end of string while looking for conversion specifier");
      value = convert(value, text[at + 1]);
      at += 2;
      if (at < end && text[at] != ':') fault("expected ':' after conversion specifier");
    }
    std::string spec;
    if (at < end) {
      StrBuilder made(runtime_.budget());
      run(format, at + 1, end, depth + 1, made);
      spec = made.text();
    }
    if (format.markup() && value.is_string()) value = Value::string(escape_html(runtime_, value));
    format_with_spec(runtime_, value, spec, out);
  }

  Value convert(const Value& value, char conversion) {
    if (conversion == 's') return Value::string(runtime_.to_str(value));
    if (conversion != 'r') {
      fault(std::string("Unknown conversion specifier ") + conversion);
    }
    StrBuilder made(runtime_.budget());
    runtime_.repr(value, made);
    return Value::string(made.finish());
  }

  Value lookup(std::string_view name) {
    const std::size_t first_end = std::min(name.find_first_of(".["), name.size());
    Value value = first(name.substr(0, first_end));
    name.remove_prefix(first_end);
    while (!name.empty()) {
      if (name[0] == '.') {
        const std::size_t end = std::min(name.find_first_of(".[", 1), name.size());
        value = runtime_.attribute(value, name.substr(1, end - 1));
        name.remove_prefix(end);
      } else if (name[0] == '[') {
        const std::size_t close = name.find(']');
        if (close == std::string_view::npos) fault("Missing ']' in format string");
        value = runtime_.item(value, key(name.substr(1, close - 1)));
        name.remove_prefix(close + 1);
      } else {
        fault("Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return value;
  }

  Value key(std::string_view text) {
    std::size_t index = 0;
    return as_index(text, index) ? Value::integer(static_cast<Int>(index))
                                 : runtime_.str(std::string(text));
  }

  static bool as_index(std::string_view text, std::size_t& index) {
    if (text.empty() || text[0] == '-') return false;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), index);
    return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  }

  Value first(std::string_view name) {
    std::size_t index = 0;
    if (name.empty() && mapping_.missing()) {
      index = next_++;
    } else if (!as_index(name, index) || !mapping_.missing()) {
      return named(name);
    }
    if (index >= args_.pos.size()) {
      fault("Replacement index " + std::to_string(index) +
            " out of range for positional args tuple");
    }
    return args_.pos[index];
  }

  Value named(std::string_view name) {
    if (!mapping_.missing()) {
      const auto* dict = mapping_.as<Dict>();
      const Value* found = dict != nullptr ? dict->find(name) : nullptr;
      if (found == nullptr) fault(runtime_.repr_text(runtime_.str(std::string(name))));
      return *found;
    }
    for (const auto& [key, value] : args_.named) {
      if (key->text() == name) return value;
    }
    fault(runtime_.repr_text(runtime_.str(std::string(name))));
  }

  Runtime& runtime_;
  const Args& args_;
  const Value& mapping_;
  std::size_t next_ = 0;
};

}  // namespace

Value format_braces(Runtime& runtime, const Value& format, const Args& args, const Value& mapping) {
  StrBuilder out(runtime.budget());
  const Str& s = format.str();
  BraceFormatter(runtime, args, mapping).run(s, 0, s.text().size(), 0, out);
  return Value::string(out.finish(s.markup()));
}

}  // namespace dunlin::jinja
