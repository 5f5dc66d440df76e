// Filters that turn a text into another.
#include <cctype>

#include "text/jinja/builtins.h"
#include "text/jinja/compare.h"
#include "text/jinja/text_ops.h"
#include "text/jinja/unicode.h"

namespace dunlin::jinja {
namespace {

// str(s): plain text even where `s` is markup.
StrPtr plain(Runtime& runtime, const StrPtr& s) {
  if (!s->markup()) return s;
  StrBuilder out(runtime.budget());
  out.append(*s);
  return out.finish();
}

template <Case how>
Value cased(Runtime& runtime, Args& args) {
  return Value::string(change_case(runtime.budget(), runtime.to_str(args.pos[0]), how));
}

// Capital after whitespace and - ( { [ <, unlike str.title.
Value title(Runtime& runtime, Args& args) {
  const StrPtr s = runtime.to_str(args.pos[0]);
  const std::string& text = s->text();
  StrBuilder out(runtime.budget());
  bool first = true;
  std::string mapped;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = decode_at(text, at);
    const bool separator = c.value == '-' || c.value == '(' || c.value == '{' || c.value == '[' ||
                           c.value == '<' || is_space(c.value);
    mapped.clear();
    if (first || separator) {
      append_upper(mapped, c.value);
    } else {
      append_lower(mapped, text, at, c);
    }
    out.append_mapped(*s, at, at + c.size, mapped);
    first = separator;
    at += c.size;
  }
  return Value::string(out.finish());
}

Value trim(Runtime& runtime, Args& args) {
  const Str* chars = nullptr;
  if (args.has(1) && !args.pos[1].is_none()) {
    if (!args.pos[1].is_string()) {
      fault("strip arg must be None or str, not " + std::string(type_name(args.pos[1])));
    }
    chars = &args.pos[1].str();
  }
  return Value::string(strip(runtime.budget(), runtime.to_str(args.pos[0]), chars, kBoth));
}

Value replace_filter(Runtime& runtime, Args& args) {
  std::size_t limit = kNoLimit;
  if (args.has(3) && !args.pos[3].is_none() && to_index(args.pos[3]) >= 0)
    limit = to_size(args.pos[3]);
  return Value::string(replace(runtime.budget(), plain(runtime, runtime.to_str(args.pos[0])),
                               *runtime.to_str(args.pos[1]), *runtime.to_str(args.pos[2]), limit));
}

Value string(Runtime& runtime, Args& args) { return Value::string(runtime.to_str(args.pos[0])); }

Value escape(Runtime& runtime, Args& args) {
  return Value::string(escape_html(runtime, args.pos[0]));
}

Value force_escape(Runtime& runtime, Args& args) {
  return Value::string(
      escape_html(runtime, Value::string(plain(runtime, runtime.to_str(args.pos[0])))));
}

Value safe(Runtime& runtime, Args& args) {
  StrBuilder out(runtime.budget());
  runtime.print(args.pos[0], out);
  return Value::string(out.finish(true));
}

Value word_count(Runtime& runtime, Args& args) {
  const StrPtr s = runtime.to_str(args.pos[0]);
  runtime.budget().scan(s->text().size());
  Int words = 0;
  bool inside = false;
  for (std::size_t at = 0; at < s->text().size();) {
    const CodePoint c = decode_at(s->text(), at);
    const bool word = c.value == '_' || is_alpha(c.value) || is_numeric(c.value);
    if (word && !inside) ++words;
    inside = word;
    at += c.size;
  }
  return Value::integer(words);
}

Value format(Runtime& runtime, Args& args) {
  const Value text = Value::string(runtime.to_str(args.pos[0]));
  if (!args.named.empty()) {
    if (args.pos.size() > 1) {
      fault("can't handle positional and keyword arguments at the same time");
    }
    auto named = runtime.dict();
    for (auto& [key, value] : args.named) named->set(Value::string(key), value);
    return format_printf(runtime, text, Value::object(named));
  }
  std::vector<Value> values(args.pos.begin() + 1, args.pos.end());
  return format_printf(runtime, text, runtime.tuple(std::move(values)));
}

void quote(Runtime& runtime, const Value& value, bool in_query, StrBuilder& out) {
  const StrPtr s = runtime.to_str(value);
  constexpr char kHex[] = "0123456789ABCDEF";
  for (std::size_t at = 0; at < s->text().size(); ++at) {
    const auto c = static_cast<unsigned char>(s->text()[at]);
    const bool keep = std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-' || c == '~' ||
                      (c == '/' && !in_query);
    if (keep) {
      out.append(*s, at, at + 1);
    } else if (c == ' ' && in_query) {
      out.append_mapped(*s, at, at + 1, "+");
    } else {
      const char code[] = {'%', kHex[c >> 4], kHex[c & 15]};
      out.append_mapped(*s, at, at + 1, std::string_view(code, sizeof code));
    }
  }
}

Value url_encode(Runtime& runtime, Args& args) {
  const Value& value = args.pos[0];
  StrBuilder out(runtime.budget());
  if (value.is_string() || !runtime.iterable(value)) {
    quote(runtime, value, false, out);
    return Value::string(out.finish());
  }
  Value pairs = value;
  if (value.as<Dict>() != nullptr) pairs = runtime.make<DictView>(value, DictView::Part::kItems);
  bool first = true;
  for (const Value& pair : runtime.collect(pairs)) {
    const std::vector<Value> parts = runtime.collect(pair);
    if (parts.size() != 2) fault("urlencode needs pairs");
    if (!first) out.append("&");
    first = false;
    quote(runtime, parts[0], true, out);
    out.append("=");
    quote(runtime, parts[1], true, out);
  }
  return Value::string(out.finish());
}

Value xml_attributes(Runtime& runtime, Args& args) {
  const auto* dict = args.pos[0].as<Dict>();
  if (dict == nullptr) fault("xmlattr needs a mapping");
  StrBuilder out(runtime.budget());
  const bool space = !args.has(1) || runtime.truthy(args.pos[1]);
  for (const auto& [key, value] : dict->entries()) {
    if (value.is_none() || value.is_undefined()) continue;
    if (key.is_string() && key.text().find_first_of(" \t\n\r\f\v/>=") != std::string::npos) {
      fault("Invalid character in attribute name: " + runtime.repr_text(key));
    }
    if (space || out.size() > 0) out.append(" ");
    out.append(*escape_html(runtime, key));
    out.append("=\"");
    out.append(*escape_html(runtime, value));
    out.append("\"");
  }
  return Value::string(out.finish());
}

constexpr Builtin kFilters[] = {
    {"capitalize", "s", 1, cased<Case::kCapital>},
    {"e", "s", 1, escape},
    {"escape", "s", 1, escape},
    {"forceescape", "value", 1, force_escape},
    {"format", "*", 1, format},
    {"lower", "s", 1, cased<Case::kLower>},
    {"replace", "s old new count", 3, replace_filter},
    {"safe", "value", 1, safe},
    {"string", "object", 1, string},
    {"title", "s", 1, title},
    {"trim", "value chars", 1, trim},
    {"upper", "s", 1, cased<Case::kUpper>},
    {"urlencode", "value", 1, url_encode},
    {"wordcount", "s", 1, word_count},
    {"xmlattr", "d autospace", 1, xml_attributes},
};

}  // namespace

StrPtr escape_html(Runtime& runtime, const Value& value) {
  const StrPtr s = runtime.to_str(value);
  if (s->markup()) return s;
  const std::string& text = s->text();
  StrBuilder out(runtime.budget());
  std::size_t plain_from = 0;
  for (std::size_t at = text.find_first_of("&<>'\""); at != std::string::npos;
       at = text.find_first_of("&<>'\"", at + 1)) {
    out.append(*s, plain_from, at);
    const char c = text[at];
    const char* entity = c == '&'   ? "&amp;"
                         : c == '<' ? "&lt;"
                         : c == '>' ? "&gt;"
                         : c == '"' ? "&#34;"
                                    : "&#39;";
    out.append_mapped(*s, at, at + 1, entity);
    plain_from = at + 1;
  }
  out.append(*s, plain_from, text.size());
  return out.finish(true);
}

std::span<const Builtin> text_filters() { return kFilters; }

}  // namespace dunlin::jinja
