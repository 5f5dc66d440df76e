// str's methods that pad, join and format.
#include "text/jinja/builtins.h"
#include "text/jinja/compare.h"
#include "text/jinja/text_ops.h"
#include "text/jinja/unicode.h"

namespace dunlin::jinja {
namespace {

Value padded(Runtime& runtime, const Args& args, std::size_t before, std::size_t after) {
  const Str& s = args.pos[0].str();
  std::string fill = " ";
  if (args.has(2)) {
    if (!args.pos[2].is_string() || args.pos[2].str().length() != 1) {
      fault("The fill character must be exactly one character long");
    }
    fill = args.pos[2].text();
  }
  StrBuilder out(runtime.budget());
  out.append_repeated(fill, before);
  out.append(s);
  out.append_repeated(fill, after);
  return Value::string(out.finish(s.markup()));
}

std::size_t room(const Args& args) {
  const std::size_t width = to_size(args.pos[1]);
  const std::size_t length = args.pos[0].str().length();
  return width > length ? width - length : 0;
}

Value center(Runtime& runtime, Args& args) {
  const std::size_t missing = room(args);
  // CPython puts the odd space on the left only where the width is odd.
  const std::size_t before = missing / 2 + (missing & to_size(args.pos[1]) & 1);
  return padded(runtime, args, before, missing - before);
}
Value ljust(Runtime& runtime, Args& args) { return padded(runtime, args, 0, room(args)); }
Value rjust(Runtime& runtime, Args& args) { return padded(runtime, args, room(args), 0); }

Value zfill(Runtime& runtime, Args& args) {
  const Str& s = args.pos[0].str();
  const bool sign = !s.text().empty() && (s.text()[0] == '-' || s.text()[0] == '+');
  StrBuilder out(runtime.budget());
  if (sign) out.append(s, 0, 1);
  out.append_repeated("0", room(args));
  out.append(s, sign ? 1 : 0, s.text().size());
  return Value::string(out.finish(s.markup()));
}

Value expandtabs(Runtime& runtime, Args& args) {
  const Str& s = args.pos[0].str();
  const std::size_t tab = args.has(1) ? to_size(args.pos[1]) : 8;
  StrBuilder out(runtime.budget());
  std::size_t column = 0;
  for (std::size_t at = 0; at < s.text().size();) {
    const std::size_t size = sequence_length(s.text()[at]);
    const char c = s.text()[at];
    if (c == '\t') {
      const std::size_t spaces = tab > 0 ? tab - column % tab : 0;
      out.append_repeated(" ", spaces);
      column += spaces;
    } else {
      out.append(s, at, at + size);
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
    at += size;
  }
  return Value::string(out.finish(s.markup()));
}

Value join_method(Runtime& runtime, Args& args) {
  return Value::string(join(runtime, args.pos[0].str_ptr(), args.pos[1]));
}

Value format_method(Runtime& runtime, Args& args) {
  const Value self = args.pos[0];
  args.pos.erase(args.pos.begin());
  return format_braces(runtime, self, args, Value());
}

Value format_map(Runtime& runtime, Args& args) {
  const Value self = args.pos[0];
  const Value mapping = args.pos[1];
  return format_braces(runtime, self, Args{}, mapping);
}

constexpr Builtin kMethods[] = {
    {"center", "self width fillchar", 2, center},
    {"expandtabs", "self tabsize", 1, expandtabs},
    {"format", "*", 1, format_method},
    {"format_map", "self mapping", 2, format_map},
    {"join", "self iterable", 2, join_method},
    {"ljust", "self width fillchar", 2, ljust},
    {"rjust", "self width fillchar", 2, rjust},
    {"zfill", "self width", 2, zfill},
};

}  // namespace

std::span<const Builtin> shape_methods() { return kMethods; }

}  // namespace dunlin::jinja
