// Python's printf-style `format % values`.
#include <cmath>
#include <cstdio>
#include <optional>

#include "text/jinja/arithmetic.h"
#include "text/jinja/builtins.h"
#include "text/jinja/compare.h"
#include "text/jinja/unicode.h"

namespace dunlin::jinja {
namespace {

constexpr std::size_t kLargestNumber = 1u << 20;

// The values on the right of %: a tuple is many, a mapping has names, anything else is one.
class Source {
 public:
  Source(Runtime& runtime, const Value& values) : runtime_(runtime), values_(values) {
    tuple_ = values.as<Tuple>();
    mapping_ =
        tuple_ == nullptr && !values.is_string() && (values.is_object() || values.is_undefined());
  }
  Value next() {
    if (tuple_ != nullptr) {
      if (used_ >= tuple_->items().size()) fault("not enough arguments for format string");
      return tuple_->items()[used_++];
    }
    if (used_++ > 0) fault("not enough arguments for format string");
    return values_;
  }
  Value named(const std::string& name) {
    if (!mapping_) fault("format requires a mapping");
    used_ = 1;
    const auto* dict = values_.as<Dict>();
    const Value* found = dict != nullptr ? dict->find(std::string_view(name)) : nullptr;
    if (found == nullptr) fault(runtime_.repr_text(runtime_.str(name)));
    return *found;
  }
  void check_all_used() const {
    const bool left = tuple_ != nullptr ? used_ < tuple_->items().size() : used_ == 0 && !mapping_;
    if (left) fault("not all arguments converted during string formatting");
  }

 private:
  Runtime& runtime_;
  const Value& values_;
  const Tuple* tuple_ = nullptr;
  bool mapping_ = false;
  std::size_t used_ = 0;
};

struct Directive {
  bool left = false, plus = false, space = false, zero = false, alternate = false;
  std::size_t width = 0;
  std::optional<std::size_t> precision;
  char type = 0;
};

class Formatter {
 public:
  Formatter(Runtime& runtime, const Str& format, const Value& values)
      : runtime_(runtime), format_(format), source_(runtime, values), out_(runtime.budget()) {}

  Value run() {
    const std::string& text = format_.text();
    while (at_ < text.size()) {
      const std::size_t percent = std::min(text.find('%', at_), text.size());
      out_.append(format_, at_, percent);
      at_ = percent;
      if (at_ < text.size()) directive();
    }
    source_.check_all_used();
    return Value::string(out_.finish(format_.markup()));
  }

 private:
  char peek() const {
    if (at_ >= format_.text().size()) fault("incomplete format");
    return format_.text()[at_];
  }

  std::size_t number() {
    std::size_t value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = value * 10 + static_cast<std::size_t>(peek() - '0');
      if (value > kLargestNumber) limit_fault("a width or precision of a format is too large");
      ++at_;
    }
    return value;
  }

  std::optional<Value> name() {
    if (peek() != '(') return std::nullopt;
    const std::size_t begin = ++at_;
    for (int depth = 1; depth > 0; ++at_) {
      if (peek() == '(') ++depth;
      if (peek() == ')') --depth;
    }
    return source_.named(format_.text().substr(begin, at_ - 1 - begin));
  }

  void flags(Directive& d) {
    for (;; ++at_) {
      switch (peek()) {
        case '-': d.left = true; break;
        case '+': d.plus = true; break;
        case ' ': d.space = true; break;
        case '0': d.zero = true; break;
        case '#': d.alternate = true; break;
        default: return;
      }
    }
  }

  std::size_t star_or_number(Directive* left_if_negative) {
    if (peek() != '*') return number();
    ++at_;
    const Value value = source_.next();
    if (!value.is_integral()) fault("* wants int");
    Int n = value.as_int();
    if (n < 0 && left_if_negative != nullptr) {
      left_if_negative->left = true;
      n = -n;
    }
    if (n > static_cast<Int>(kLargestNumber))
      limit_fault("a width or precision of a format is too large");
    return static_cast<std::size_t>(n < 0 ? 0 : n);
  }

  void directive() {
    const std::size_t begin = at_++;
    Directive d;
    std::optional<Value> value = name();
    flags(d);
    d.width = star_or_number(&d);
    if (peek() == '.') {
      ++at_;
      d.precision = star_or_number(nullptr);
    }
    while (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    d.type = peek();
    ++at_;
    if (d.type == '%') {
      out_.append_mapped(format_, begin, at_, "%");
      return;
    }
    if (!value) value = source_.next();
    convert(d, *value);
  }

  void convert(const Directive& d, const Value& value) {
    switch (d.type) {
      case 's':
      case 'r':
      case 'a': return text(d, value);
      case 'd':
      case 'i':
      case 'u': return integer(d, value, 10);
      case 'o': return integer(d, value, 8);
      case 'x':
      case 'X': return integer(d, value, 16);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': return real(d, value);
      case 'c': return character(d, value);
      default: fault(std::string("unsupported format character '") + d.type + "'");
    }
  }

  void put(const Directive& d, std::string_view prefix, const Str& body) {
    const std::size_t length = prefix.size() + body.length();
    const std::size_t missing = d.width > length ? d.width - length : 0;
    const bool zeros =
        d.zero && !d.left && d.type != 's' && d.type != 'r' && d.type != 'c' && d.type != 'a';
    if (!d.left && !zeros) out_.append_repeated(" ", missing);
    out_.append(prefix);
    if (zeros) out_.append_repeated("0", missing);
    out_.append(body);
    if (d.left) out_.append_repeated(" ", missing);
  }
  void put(const Directive& d, std::string_view prefix, std::string body) {
    put(d, prefix, *make_str(runtime_.budget(), std::move(body)));
  }

  void text(const Directive& d, const Value& value) {
    StrBuilder made(runtime_.budget());
    if (d.type == 's') {
      made.append(format_.markup() ? *escape_html(runtime_, value) : *runtime_.to_str(value));
    } else {
      runtime_.repr(value, made);
    }
    StrPtr s = made.finish();
    if (d.precision && *d.precision < s->length()) {
      s = substr(runtime_.budget(), s, 0, s->offset_of(*d.precision));
    }
    put(d, "", *s);
  }

  std::string sign(const Directive& d, bool negative) const {
    return negative ? "-" : d.plus ? "+" : d.space ? " " : "";
  }

  void integer(const Directive& d, const Value& value, unsigned base) {
    if (!value.is_integral() && (base != 10 || !value.is_float())) {
      fault(std::string("%") + d.type +
            " format: " + (base == 10 ? "a real number" : "an integer") + " is required, not " +
            std::string(type_name(value)));
    }
    const Int n = value.is_float() ? truncate_float(value.as_float()) : value.as_int();
    auto rest = n < 0 ? -static_cast<unsigned __int128>(n) : static_cast<unsigned __int128>(n);
    const char* alphabet = d.type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    std::string digits;
    do {
      digits.insert(digits.begin(), alphabet[static_cast<int>(rest % base)]);
      rest /= base;
    } while (rest != 0);
    if (d.precision && digits.size() < *d.precision) {
      runtime_.budget().scan(*d.precision);
      digits.insert(0, *d.precision - digits.size(), '0');
    }
    std::string prefix = sign(d, n < 0);
    if (d.alternate && base != 10) prefix += std::string("0") + d.type;
    put(d, prefix, std::move(digits));
  }

  void real(const Directive& d, const Value& value) {
    if (!value.is_number()) {
      fault("must be real number, not " + std::string(type_name(value)));
    }
    const double x = value.as_float();
    const bool negative = std::signbit(x) && !std::isnan(x);
    const std::string format = std::string("%") + (d.alternate ? "#" : "") + ".*" + d.type;
    const int precision = static_cast<int>(d.precision.value_or(6));
    runtime_.budget().scan(d.precision.value_or(6));
    std::string digits(static_cast<std::size_t>(precision) + 400, '\0');
    digits.resize(static_cast<std::size_t>(
        std::snprintf(digits.data(), digits.size(), format.c_str(), precision, std::fabs(x))));
    put(d, sign(d, negative), std::move(digits));
  }

  void character(const Directive& d, const Value& value) {
    if (value.is_string() && value.str().length() == 1) return put(d, "", value.str());
    if (!value.is_integral()) fault("%c requires int or char");
    const Int n = value.as_int();
    if (n < 0 || n > 0x10FFFF || (n >= 0xD800 && n < 0xE000))
      fault("%c arg not in range(0x110000)");
    std::string text;
    append_utf8(text, static_cast<char32_t>(n));
    put(d, "", std::move(text));
  }

  Runtime& runtime_;
  const Str& format_;
  Source source_;
  StrBuilder out_;
  std::size_t at_ = 0;
};

}  // namespace

Value format_printf(Runtime& runtime, const Value& format, const Value& values) {
  return Formatter(runtime, format.str(), values).run();
}

}  // namespace dunlin::jinja
