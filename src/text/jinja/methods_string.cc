// str's methods that change case or ask what kind of characters there are.
#include "text/jinja/builtins.h"
#include "text/jinja/text_ops.h"
#include "text/jinja/unicode.h"

namespace dunlin::jinja {
namespace {

template <Case how>
Value cased(Runtime& runtime, Args& args) {
  return Value::string(change_case(runtime.budget(), args.pos[0].str_ptr(), how));
}

// True where the text is not empty and all its characters are such.
template <typename Predicate>
Value every(Runtime& runtime, const Args& args, Predicate predicate) {
  const std::string& text = args.pos[0].text();
  runtime.budget().scan(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_at(text, at);
    if (!predicate(c.value)) return Value::boolean(false);
    at += c.size;
  }
  return Value::boolean(!text.empty());
}

Value is_alnum_text(Runtime& runtime, Args& args) {
  return every(runtime, args, [](char32_t c) {
    return is_alpha(c) || is_decimal(c) || is_digit(c) || is_numeric(c);
  });
}
Value is_alpha_text(Runtime& runtime, Args& args) { return every(runtime, args, is_alpha); }
Value is_decimal_text(Runtime& runtime, Args& args) { return every(runtime, args, is_decimal); }
Value is_digit_text(Runtime& runtime, Args& args) { return every(runtime, args, is_digit); }
Value is_numeric_text(Runtime& runtime, Args& args) { return every(runtime, args, is_numeric); }
Value is_space_text(Runtime& runtime, Args& args) { return every(runtime, args, is_space); }

Value is_ascii_text(Runtime&, Args& args) { return Value::boolean(args.pos[0].str().ascii()); }

Value is_printable_text(Runtime& runtime, Args& args) {
  return args.pos[0].text().empty() ? Value::boolean(true) : every(runtime, args, is_printable);
}

Value is_identifier_text(Runtime& runtime, Args& args) {
  const std::string& text = args.pos[0].text();
  if (text.empty() || !is_identifier_start(decode_at(text, 0).value)) return Value::boolean(false);
  return every(runtime, args, is_identifier_part);
}

// All cased characters are of one case, and there is one.
Value one_case(Runtime& runtime, const Args& args, bool upper) {
  const std::string& text = args.pos[0].text();
  runtime.budget().scan(text.size());
  bool seen = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_at(text, at);
    if (is_title(c.value) || (upper ? is_lower(c.value) : is_upper(c.value))) {
      return Value::boolean(false);
    }
    seen = seen || (upper ? is_upper(c.value) : is_lower(c.value));
    at += c.size;
  }
  return Value::boolean(seen);
}
Value is_lower_text(Runtime& runtime, Args& args) { return one_case(runtime, args, false); }
Value is_upper_text(Runtime& runtime, Args& args) { return one_case(runtime, args, true); }

Value is_title_text(Runtime& runtime, Args& args) {
  const std::string& text = args.pos[0].text();
  runtime.budget().scan(text.size());
  bool seen = false;
  bool in_word = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_at(text, at);
    const bool capital = is_upper(c.value) || is_title(c.value);
    if (capital ? in_word : is_lower(c.value) && !in_word) return Value::boolean(false);
    in_word = is_cased(c.value);
    seen = seen || in_word;
    at += c.size;
  }
  return Value::boolean(seen);
}

constexpr Builtin kMethods[] = {
    {"capitalize", "self", 1, cased<Case::kCapital>},
    {"casefold", "self", 1, cased<Case::kFold>},
    {"isalnum", "self", 1, is_alnum_text},
    {"isalpha", "self", 1, is_alpha_text},
    {"isascii", "self", 1, is_ascii_text},
    {"isdecimal", "self", 1, is_decimal_text},
    {"isdigit", "self", 1, is_digit_text},
    {"isidentifier", "self", 1, is_identifier_text},
    {"islower", "self", 1, is_lower_text},
    {"isnumeric", "self", 1, is_numeric_text},
    {"isprintable", "self", 1, is_printable_text},
    {"isspace", "self", 1, is_space_text},
    {"istitle", "self", 1, is_title_text},
    {"isupper", "self", 1, is_upper_text},
    {"lower", "self", 1, cased<Case::kLower>},
    {"swapcase", "self", 1, cased<Case::kSwap>},
    {"title", "self", 1, cased<Case::kTitle>},
    {"upper", "self", 1, cased<Case::kUpper>},
};

}  // namespace

std::span<const Builtin> string_methods() { return kMethods; }

}  // namespace dunlin::jinja
