// The format mini-language: [[fill]align][sign][#][0][width][,|_][.precision][type].
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include "text/jinja/arithmetic.h"
#include "text/jinja/builtins.h"
#include "text/jinja/compare.h"
#include "text/jinja/unicode.h"

namespace dunlin::jinja {
namespace {

struct Spec {
  std::string fill = " ";
  char align = 0;  // < > = ^, 0 where not given
  char sign = '-';
  bool sign_given = false;
  bool alternate = false;
  std::size_t width = 0;
  char grouping = 0;
  std::optional<std::size_t> precision;
  char type = 0;
};

constexpr std::size_t kLargestNumber = 1u << 20;  // of widths and precisions

bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

std::optional<std::size_t> take_number(std::string_view& text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  std::size_t number = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    number = number * 10 + static_cast<std::size_t>(text[0] - '0');
    if (number > kLargestNumber) limit_fault("a width or precision of a format is too large");
    text.remove_prefix(1);
  }
  return number;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text[0] != c) return false;
  text.remove_prefix(1);
  return true;
}

Spec parse_spec(std::string_view text, const Value& value) {
  Spec spec;
  const std::string_view whole = text;
  if (!text.empty()) {
    const std::size_t size = sequence_length(text[0]);
    if (text.size() > size && is_align(text[size])) {
      spec.fill = std::string(text.substr(0, size));
      spec.align = text[size];
      text.remove_prefix(size + 1);
    } else if (is_align(text[0])) {
      spec.align = text[0];
      text.remove_prefix(1);
    }
  }
  for (const char c : {'+', '-', ' '}) {
    if (take(text, c)) {
      spec.sign = c;
      spec.sign_given = true;
      break;
    }
  }
  spec.alternate = take(text, '#');
  if (take(text, '0') && spec.align == 0) {
    spec.fill.assign(1, '0');
    if (value.is_number()) spec.align = '=';
  }
  spec.width = take_number(text).value_or(0);
  if (take(text, ','))
    spec.grouping = ',';
  else if (take(text, '_'))
    spec.grouping = '_';
  if (take(text, '.')) {
    spec.precision = take_number(text);
    if (!spec.precision) fault("Format specifier missing precision");
  }
  if (!text.empty()) {
    spec.type = text[0];
    text.remove_prefix(1);
  }
  if (!text.empty()) {
    fault(fmt::format("Invalid format specifier '{}' for object of type '{}'", whole,
                      type_name(value)));
  }
  return spec;
}

[[noreturn]] void unknown_code(char code, const Value& value) {
  fault(fmt::format("Unknown format code '{}' for object of type '{}'", code, type_name(value)));
}

std::string grouped(std::string digits, char separator, std::size_t every) {
  if (separator == 0) return digits;
  std::size_t whole = digits.find_first_not_of("0123456789abcdefABCDEF");
  if (whole == std::string::npos) whole = digits.size();
  for (std::size_t at = whole; at > every;) {
    at -= every;
    digits.insert(at, 1, separator);
  }
  return digits;
}

void pad(StrBuilder& out, const Spec& spec, char default_align, std::string_view prefix,
         std::size_t length, auto&& body) {
  const char align = spec.align != 0 ? spec.align : default_align;
  const std::size_t total = prefix.size() + length;
  const std::size_t missing = spec.width > total ? spec.width - total : 0;
  const std::size_t before = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  out.append_repeated(spec.fill, before);
  out.append(prefix);
  if (align == '=') out.append_repeated(spec.fill, missing);
  body();
  if (align != '=') out.append_repeated(spec.fill, missing - before);
}

std::string sign_of(const Spec& spec, bool negative) {
  if (negative) return "-";
  return spec.sign == '-' ? "" : std::string(1, spec.sign);
}

void format_int(const Value& value, const Spec& spec, StrBuilder& out) {
  if (spec.precision) fault("Precision not allowed in integer format specifier");
  const Int number = value.as_int();
  std::string digits;
  std::string prefix = sign_of(spec, number < 0);
  if (spec.type == 'c') {
    if (number < 0 || number > 0x10FFFF || (number >= 0xD800 && number < 0xE000)) {
      fault("%c arg not in range(0x110000)");
    }
    append_utf8(digits, static_cast<char32_t>(number));
    pad(out, spec, '<', "", 1, [&] { out.append(digits); });
    return;
  }
  const int base = spec.type == 'b'                       ? 2
                   : spec.type == 'o'                     ? 8
                   : spec.type == 'x' || spec.type == 'X' ? 16
                                                          : 10;
  const char* alphabet = spec.type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
  auto rest =
      number < 0 ? -static_cast<unsigned __int128>(number) : static_cast<unsigned __int128>(number);
  do {
    digits += alphabet[static_cast<int>(rest % static_cast<unsigned>(base))];
    rest /= static_cast<unsigned>(base);
  } while (rest != 0);
  std::reverse(digits.begin(), digits.end());
  digits = grouped(digits, spec.grouping, base == 10 ? 3 : 4);
  if (spec.alternate && base != 10) prefix += std::string("0") + spec.type;
  pad(out, spec, '>', prefix, digits.size(), [&] { out.append(digits); });
}

// No type: the shortest text, or %g that keeps a ".0".
std::string general_digits(double magnitude, const Spec& spec) {
  if (!spec.precision) return float_text(magnitude);
  const int precision = std::max(1, static_cast<int>(*spec.precision));
  char probe[64];
  std::snprintf(probe, sizeof probe, "%.*e", std::min(precision - 1, 40), magnitude);
  const int exponent =
      std::atoi(std::string(probe).substr(std::string(probe).find('e') + 1).c_str());
  std::string digits(static_cast<std::size_t>(precision) + 64, '\0');
  const bool scientific = exponent < -4 || exponent >= precision;
  digits.resize(static_cast<std::size_t>(
      std::snprintf(digits.data(), digits.size(), "%.*g", precision, magnitude)));
  if (!scientific && digits.find('.') == std::string::npos) {
    if (exponent + 1 < precision) return digits + ".0";
    std::snprintf(probe, sizeof probe, "%.*e", std::min(precision - 1, 40), magnitude);
    return probe;
  }
  return digits;
}

void format_float(const Value& value, const Spec& spec, StrBuilder& out) {
  double number = value.as_float();
  const bool negative = std::signbit(number) && !std::isnan(number);
  double magnitude = std::fabs(number);
  std::string digits;
  const char type = spec.type == 0 || spec.type == 'n' ? 0 : spec.type;
  if (type == '%') magnitude *= 100;
  if (!std::isfinite(magnitude)) {
    digits = std::isnan(magnitude) ? "nan" : "inf";
    if (type == 'F' || type == 'E' || type == 'G') digits = std::isnan(magnitude) ? "NAN" : "INF";
  } else if (type == 0) {
    digits = general_digits(magnitude, spec);
  } else {
    const std::string format =
        std::string("%") + (spec.alternate ? "#" : "") + ".*" + (type == '%' ? 'f' : type);
    const int precision = static_cast<int>(spec.precision.value_or(6));
    digits.resize(static_cast<std::size_t>(precision) + 400);
    digits.resize(static_cast<std::size_t>(
        std::snprintf(digits.data(), digits.size(), format.c_str(), precision, magnitude)));
  }
  digits = grouped(digits, spec.grouping, 3);
  if (type == '%') digits += '%';
  pad(out, spec, '>', sign_of(spec, negative), digits.size(), [&] { out.append(digits); });
}

void format_text(Runtime& runtime, const Value& value, const Spec& spec, StrBuilder& out) {
  if (spec.type != 0 && spec.type != 's') unknown_code(spec.type, value);
  if (spec.sign_given) fault("Sign not allowed in string format specifier");
  if (spec.align == '=') fault("'=' alignment not allowed in string format specifier");
  if (spec.grouping != 0) fault(std::string("Cannot specify '") + spec.grouping + "' with 's'.");
  StrPtr text = runtime.to_str(value);
  if (spec.precision && *spec.precision < text->length()) {
    text = substr(runtime.budget(), text, 0, text->offset_of(*spec.precision));
  }
  pad(out, spec, '<', "", text->length(), [&] { out.append(*text); });
}

}  // namespace

void format_with_spec(Runtime& runtime, const Value& value, std::string_view text,
                      StrBuilder& out) {
  if (text.empty()) {
    runtime.print(value, out);
    return;
  }
  if (!value.is_number() && !value.is_string()) {
    fault("unsupported format string passed to " + std::string(type_name(value)) + ".__format__");
  }
  const Spec spec = parse_spec(text, value);
  if (value.is_string()) {
    format_text(runtime, value, spec, out);
    return;
  }
  constexpr std::string_view kIntTypes = "bcdoxXn";
  constexpr std::string_view kFloatTypes = "eEfFgGn%";
  if (value.is_integral() &&
      (spec.type == 0 || kIntTypes.find(spec.type) != std::string_view::npos)) {
    format_int(value, spec, out);
  } else if (spec.type == 0 || kFloatTypes.find(spec.type) != std::string_view::npos) {
    format_float(value, spec, out);
  } else {
    unknown_code(spec.type, value);
  }
}

}  // namespace dunlin::jinja
