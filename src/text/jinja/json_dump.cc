// The tojson filter as chat templates know it: json.dumps with ensure_ascii off by default.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "text/jinja/builtins.h"
#include "text/jinja/compare.h"
#include "text/jinja/nesting.h"
#include "text/jinja/unicode.h"

namespace dunlin::jinja {
namespace {

std::string unicode_escape(char32_t c) {
  char buffer[16];
  if (c < 0x10000) {
    std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(c));
  } else {
    const unsigned rest = static_cast<unsigned>(c) - 0x10000;
    std::snprintf(buffer, sizeof buffer, "\\u%04x\\u%04x", 0xD800 + (rest >> 10),
                  0xDC00 + (rest & 0x3FF));
  }
  return buffer;
}

std::string json_escape(char32_t c, bool ascii) {
  switch (c) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    case '\f': return "\\f";
    case '\b': return "\\b";
    default: return c < 0x20 || (ascii && c >= 0x7F) ? unicode_escape(c) : "";
  }
}

void dump_string(const Str& s, bool ascii, StrBuilder& out) {
  const std::string& text = s.text();
  out.append('"');
  std::size_t plain = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_at(text, at);
    const std::string instead = json_escape(c.value, ascii);
    if (!instead.empty()) {
      out.append(s, plain, at);
      out.append_mapped(s, at, at + c.size, instead);
      plain = at + c.size;
    }
    at += c.size;
  }
  out.append(s, plain, text.size());
  out.append('"');
}

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return float_text(value);
}

class Dumper {
 public:
  Dumper(Runtime& runtime, const JsonStyle& style, StrBuilder& out)
      : runtime_(runtime), style_(style), out_(out) {}

  void dump(const Value& value) {
    runtime_.budget().step();
    switch (value.kind()) {
      case Kind::kNone: return out_.append("null");
      case Kind::kBool: return out_.append(value.as_bool() ? "true" : "false");
      case Kind::kInt: return out_.append(int_text(value.as_int()));
      case Kind::kFloat: return out_.append(json_float(value.as_float()));
      case Kind::kString: return dump_string(value.str(), style_.ascii, out_);
      case Kind::kObject: break;
      default: fault("Object of type Undefined is not JSON serializable");
    }
    const Nesting nesting(runtime_.budget());
    if (const auto* list = value.as<List>()) return items(list->items());
    if (const auto* tuple = value.as<Tuple>()) return items(tuple->items());
    if (const auto* dict = value.as<Dict>()) return entries(*dict);
    fault("Object of type " + std::string(type_name(value)) + " is not JSON serializable");
  }

 private:
  void line() {
    if (!style_.multi_line) return;
    out_.append("\n");
    for (int i = 0; i < depth_; ++i) out_.append(*style_.indent);
  }

  void items(const std::vector<Value>& list) {
    if (list.empty()) return out_.append("[]");
    out_.append("[");
    ++depth_;
    bool first = true;
    for (const Value& item : list) {
      if (!first) out_.append(*style_.item_separator);
      first = false;
      line();
      dump(item);
    }
    --depth_;
    line();
    out_.append("]");
  }

  void entries(const Dict& dict) {
    if (dict.entries().empty()) return out_.append("{}");
    std::vector<Dict::Entry> sorted;
    if (style_.sort_keys) {
      sorted = dict.entries();
      std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) {
        return order(runtime_.budget(), a.first, b.first, "<") < 0;
      });
    }
    out_.append("{");
    ++depth_;
    bool first = true;
    for (const auto& [key, value] : style_.sort_keys ? sorted : dict.entries()) {
      if (!first) out_.append(*style_.item_separator);
      first = false;
      line();
      dump_key(key);
      out_.append(*style_.key_separator);
      dump(value);
    }
    --depth_;
    line();
    out_.append("}");
  }

  void dump_key(const Value& key) {
    if (key.is_string()) return dump_string(key.str(), style_.ascii, out_);
    if (!key.is_number() && !key.is_none()) {
      fault("keys must be str, int, float, bool or None, not " + std::string(type_name(key)));
    }
    out_.append('"');
    dump(key);
    out_.append('"');
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  StrBuilder& out_;
  int depth_ = 0;
};

StrPtr text_of(Runtime& runtime, std::string_view text) {
  return make_str(runtime.budget(), std::string(text));
}

}  // namespace

void dump_json(Runtime& runtime, const Value& value, const JsonStyle& style, StrBuilder& out) {
  Dumper(runtime, style, out).dump(value);
}

Value to_json(Runtime& runtime, Args& args) {
  JsonStyle style;
  style.ascii = args.has(1) && runtime.truthy(args.pos[1]);
  style.sort_keys = args.has(4) && runtime.truthy(args.pos[4]);
  const Value indent = args.has(2) ? args.pos[2] : Value::none();
  style.multi_line = !indent.is_none();
  if (indent.is_string()) {
    style.indent = indent.str_ptr();
  } else if (style.multi_line) {
    StrBuilder spaces(runtime.budget());
    spaces.append_repeated(" ", to_size(indent));
    style.indent = spaces.finish();
  }
  style.item_separator = text_of(runtime, style.multi_line ? "," : ", ");
  style.key_separator = text_of(runtime, ": ");
  if (args.has(3) && !args.pos[3].is_none()) {
    const std::vector<Value> separators = runtime.collect(args.pos[3]);
    if (separators.size() != 2 || !separators[0].is_string() || !separators[1].is_string()) {
      fault("separators must be two strings");
    }
    style.item_separator = separators[0].str_ptr();
    style.key_separator = separators[1].str_ptr();
  }
  StrBuilder out(runtime.budget());
  dump_json(runtime, args.pos[0], style, out);
  return Value::string(out.finish());
}

}  // namespace dunlin::jinja
