// Numbers from text, and the filters abs, int, float and round.
#include <charconv>
#include <cmath>

#include "base/ascii.h"
#include "text/jinja/arithmetic.h"
#include "text/jinja/builtins.h"
#include "text/jinja/compare.h"
#include "text/jinja/numbers.h"
#include "text/jinja/unicode.h"

namespace dunlin::jinja {
namespace {

std::string_view without_space(std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = decode_at(text, 0);
    if (!is_space(c.value)) break;
    text.remove_prefix(c.size);
  }
  while (!text.empty()) {
    std::size_t at = text.size() - 1;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    if (!is_space(decode_at(text, at).value)) break;
    text = text.substr(0, at);
  }
  return text;
}

// Takes underscores out where each stands between two digits; nothing where one does not.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const auto alnum = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
    if (i == 0 || i + 1 == text.size() || !alnum(text[i - 1]) || !alnum(text[i + 1])) {
      return std::nullopt;
    }
  }
  return out;
}

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'z' ? lower - 'a' + 10 : 99;
}

Value absolute(Runtime&, Args& args) {
  const Value& value = args.pos[0];
  if (value.is_float()) return Value::real(std::fabs(value.as_float()));
  if (!value.is_integral())
    fault("bad operand type for abs(): '" + std::string(type_name(value)) + "'");
  return value.as_int() < 0 ? negate(value) : plus(value);
}

Value int_filter(Runtime&, Args& args) {
  const int base = args.has(2) ? static_cast<int>(to_index(args.pos[2])) : 10;
  if (const auto number = to_int(args.pos[0], base)) return Value::integer(*number);
  if (const auto number = to_float(args.pos[0]); number && !std::isnan(*number)) {
    return Value::integer(truncate_float(*number));
  }
  return args.has(1) ? args.pos[1] : Value::integer(0);
}

Value float_filter(Runtime&, Args& args) {
  if (const auto number = to_float(args.pos[0])) return Value::real(*number);
  return args.has(1) ? args.pos[1] : Value::real(0);
}

Value round_filter(Runtime&, Args& args) {
  const Value& value = args.pos[0];
  const Int precision = args.has(1) ? to_index(args.pos[1]) : 0;
  std::string method = "common";
  if (args.has(2) && args.pos[2].is_string()) method = args.pos[2].text();
  if (method != "common" && method != "ceil" && method != "floor") {
    fault("method must be common, ceil or floor");
  }
  if (value.is_undefined()) fault(value.as_undefined().message);
  if (!value.is_number()) {
    fault("type " + std::string(type_name(value)) + " doesn't define __round__ method");
  }
  if (method == "common") return round_number(value, precision);
  const double unit = std::pow(10.0, static_cast<double>(precision));
  const double scaled = value.as_float() * unit;
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit);
}

constexpr Builtin kFilters[] = {
    {"abs", "number", 1, absolute},
    {"float", "value default", 1, float_filter},
    {"int", "value default base", 1, int_filter},
    {"round", "value precision method", 1, round_filter},
};

}  // namespace

std::span<const Builtin> number_filters() { return kFilters; }

std::optional<double> parse_float(std::string_view text) {
  const auto plain = without_underscores(without_space(text));
  if (!plain) return std::nullopt;
  std::string_view rest = *plain;
  const bool negative = !rest.empty() && rest[0] == '-';
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) rest.remove_prefix(1);
  const std::string word = ascii_lower(rest);
  double number = 0;
  if (word == "inf" || word == "infinity") {
    number = HUGE_VAL;
  } else if (word == "nan") {
    number = NAN;
  } else {
    if (rest.empty() || (digit_value(rest[0]) > 9 && rest[0] != '.')) return std::nullopt;
    const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (parsed.ptr != rest.data() + rest.size()) return std::nullopt;
    if (parsed.ec == std::errc::result_out_of_range) {
      number = std::strtod(std::string(rest).c_str(), nullptr);  // 0 or infinity
    } else if (parsed.ec != std::errc()) {
      return std::nullopt;
    }
  }
  return negative ? -number : number;
}

std::optional<Int> parse_int(std::string_view text, int base) {
  text = without_space(text);
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (text.size() > 2 && text[0] == '0') {
    const char kind = static_cast<char>(text[1] | 0x20);
    const int prefixed = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    if (prefixed != 0 && (base == 0 || base == prefixed)) {
      base = prefixed;
      text.remove_prefix(text[2] == '_' ? 3 : 2);
    }
  }
  const auto digits = without_underscores(text);
  if (base == 0) {
    if (digits && digits->size() > 1 && (*digits)[0] == '0' &&
        digits->find_first_not_of('0') != std::string::npos) {
      return std::nullopt;
    }
    base = 10;
  }
  if (!digits || digits->empty() || base < 2 || base > 36) return std::nullopt;
  Int number = 0;
  for (const char c : *digits) {
    if (digit_value(c) >= base) return std::nullopt;
  }
  for (const char c : *digits) {
    if (__builtin_mul_overflow(number, Int{base}, &number) ||
        __builtin_add_overflow(number, Int{digit_value(c)}, &number)) {
      fault("the text is an integer too large for this engine");
    }
  }
  return negative ? -number : number;
}

std::optional<double> to_float(const Value& value) {
  if (value.is_undefined()) fault(value.as_undefined().message);
  if (value.is_number()) return value.as_float();
  return value.is_string() ? parse_float(value.text()) : std::nullopt;
}

std::optional<Int> to_int(const Value& value, int base) {
  if (value.is_undefined()) fault(value.as_undefined().message);
  if (value.is_integral()) return value.as_int();
  if (value.is_float()) {
    if (std::isnan(value.as_float())) return std::nullopt;
    return truncate_float(value.as_float());
  }
  return value.is_string() ? parse_int(value.text(), base) : std::nullopt;
}

}  // namespace dunlin::jinja
