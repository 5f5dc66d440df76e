// str() and repr() of every value.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "text/jinja/nesting.h"
#include "text/jinja/runtime.h"
#include "text/jinja/unicode.h"

namespace dunlin::jinja {
namespace {

void repr_items(Runtime& runtime, const std::vector<Value>& items, StrBuilder& out) {
  bool first = true;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!first) out.append(", ");
    first = false;
    runtime.repr(items[i], out);
  }
}

void repr_dict(Runtime& runtime, const Dict& dict, StrBuilder& out) {
  out.append("{");
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!first) out.append(", ");
    first = false;
    runtime.repr(key, out);
    out.append(": ");
    runtime.repr(value, out);
  }
  out.append("}");
}

void repr_view(Runtime& runtime, const DictView& view, StrBuilder& out) {
  out.append(view.type_name());
  out.append("([");
  for (std::size_t i = 0; i < view.dict().entries().size(); ++i) {
    if (i > 0) out.append(", ");
    runtime.repr(view.at(runtime, i), out);
  }
  out.append("])");
}

void repr_object(Runtime& runtime, const Value& value, StrBuilder& out) {
  const Nesting nesting(runtime.budget());
  if (const auto* list = value.as<List>()) {
    out.append("[");
    repr_items(runtime, list->items(), out);
    out.append("]");
  } else if (const auto* tuple = value.as<Tuple>()) {
    out.append("(");
    repr_items(runtime, tuple->items(), out);
    out.append(tuple->items().size() == 1 ? ",)" : ")");
  } else if (const auto* dict = value.as<Dict>()) {
    repr_dict(runtime, *dict, out);
  } else if (const auto* view = value.as<DictView>()) {
    repr_view(runtime, *view, out);
  } else {
    value.object().print(runtime, out);
  }
}

std::string escaped(char32_t c) {
  char buffer[16];
  const char* format = c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x";
  std::snprintf(buffer, sizeof buffer, format, static_cast<unsigned>(c));
  return buffer;
}

}  // namespace

std::string int_text(Int value) {
  if (value == 0) return "0";
  std::string digits;
  const bool negative = value < 0;
  while (value != 0) {
    const int digit = static_cast<int>(value % 10);
    digits += static_cast<char>('0' + (negative ? -digit : digit));
    value /= 10;
  }
  if (negative) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  // [-]D[.DDD]e[+-]XX holds the shortest digits; Python lays them out anew.
  std::string text(buffer, end);
  const std::size_t e = text.find('e');
  const int exponent = std::stoi(text.substr(e + 1));
  std::string sign = text[0] == '-' ? "-" : "";
  std::string digits;
  for (const char c : text.substr(0, e)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  if (exponent < -4 || exponent >= 16) {
    std::string out = sign + digits[0];
    if (digits.size() > 1) out += "." + digits.substr(1);
    std::snprintf(buffer, sizeof buffer, "e%+03d", exponent);
    return out + buffer;
  }
  if (exponent < 0) return sign + "0." + std::string(-exponent - 1, '0') + digits;
  const std::size_t whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

void repr_string(const Str& s, StrBuilder& out) {
  const std::string& text = s.text();
  const bool has_single = text.find('\'') != std::string::npos;
  const bool has_double = text.find('"') != std::string::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  if (s.markup()) out.append("Markup(");
  out.append(quote);
  std::size_t plain = 0;  // start of the run that needs no escape
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_at(text, at);
    std::string instead;
    if (c.value == static_cast<unsigned char>(quote) || c.value == '\\') {
      instead = {'\\', static_cast<char>(c.value)};
    } else if (c.value == '\n') {
      instead = "\\n";
    } else if (c.value == '\r') {
      instead = "\\r";
    } else if (c.value == '\t') {
      instead = "\\t";
    } else if (c.value < 0x20 || (c.value >= 0x7F && !is_printable(c.value))) {
      instead = escaped(c.value);
    }
    if (!instead.empty()) {
      out.append(s, plain, at);
      out.append_mapped(s, at, at + c.size, instead);
      plain = at + c.size;
    }
    at += c.size;
  }
  out.append(s, plain, text.size());
  out.append(quote);
  if (s.markup()) out.append(")");
}

void Runtime::repr(const Value& value, StrBuilder& out) {
  budget_.step();
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined: out.append("Undefined"); break;
    case Kind::kNone: out.append("None"); break;
    case Kind::kBool: out.append(value.as_bool() ? "True" : "False"); break;
    case Kind::kInt: out.append(int_text(value.as_int())); break;
    case Kind::kFloat: out.append(float_text(value.as_float())); break;
    case Kind::kString: repr_string(value.str(), out); break;
    case Kind::kObject: repr_object(*this, value, out); break;
  }
}

void Runtime::print(const Value& value, StrBuilder& out) {
  if (value.is_string()) {
    out.append(value.str());
  } else if (!value.is_undefined()) {
    repr(value, out);
  }
}

StrPtr Runtime::to_str(const Value& value) {
  if (value.is_string()) return value.str_ptr();
  StrBuilder out(budget_);
  print(value, out);
  return out.finish();
}

std::string Runtime::repr_text(const Value& value) {
  StrBuilder out(budget_);
  repr(value, out);
  constexpr std::size_t kLongest = 200;  // for messages
  std::string text = out.text();
  if (text.size() > kLongest) {
    std::size_t cut = kLongest;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
    text = text.substr(0, cut) + "...";
  }
  return text;
}

}  // namespace dunlin::jinja
