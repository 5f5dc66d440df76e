// Filters that lay text out: center, indent, truncate, filesizeformat.
#include <cmath>
#include <cstdio>

#include "text/jinja/builtins.h"
#include "text/jinja/compare.h"
#include "text/jinja/numbers.h"
#include "text/jinja/text_ops.h"

namespace dunlin::jinja {
namespace {

Value center(Runtime& runtime, Args& args) {
  const Value text = Value::string(runtime.to_str(args.pos[0]));
  Args inner{{text, args.has(1) ? args.pos[1] : Value::integer(80)}, {}};
  return invoke(runtime, *find_method(text, "center"), inner);
}

const StrPtr& must_be_text(const Value& value) {
  if (value.is_undefined()) fault(value.as_undefined().message);
  if (!value.is_string())
    fault("expected str instance, " + std::string(type_name(value)) + " found");
  return value.str_ptr();
}

Value indent(Runtime& runtime, Args& args) {
  const StrPtr& s = must_be_text(args.pos[0]);
  StrPtr margin;
  if (args.has(1) && args.pos[1].is_string()) {
    margin = args.pos[1].str_ptr();
  } else {
    StrBuilder spaces(runtime.budget());
    spaces.append_repeated(" ", args.has(1) ? to_size(args.pos[1]) : 4);
    margin = spaces.finish();
  }
  const bool first = args.has(2) && runtime.truthy(args.pos[2]);
  const bool blank = args.has(3) && runtime.truthy(args.pos[3]);
  StrBuilder with_end(runtime.budget());
  with_end.append(*s);
  with_end.append("\n");
  StrBuilder out(runtime.budget());
  bool on_first = true;
  for (const StrPtr& line : split_lines(runtime.budget(), with_end.finish(), false)) {
    if (!on_first) out.append("\n");
    if (on_first ? first : blank || !line->text().empty()) out.append(*margin);
    out.append(*line);
    on_first = false;
  }
  return Value::string(out.finish(s->markup()));
}

Value truncate(Runtime& runtime, Args& args) {
  const Int length = args.has(1) ? to_index(args.pos[1]) : 255;
  const bool kill_words = args.has(2) && runtime.truthy(args.pos[2]);
  const StrPtr end = args.has(3) ? must_be_text(args.pos[3]) : make_str(runtime.budget(), "...");
  const Int leeway = args.has(4) && !args.pos[4].is_none() ? to_index(args.pos[4]) : 5;
  const Int end_length = static_cast<Int>(end->length());
  if (length < end_length) {
    fault("expected length >= " + int_text(end_length) + ", got " + int_text(length));
  }
  if (leeway < 0) fault("expected leeway >= 0, got " + int_text(leeway));
  const auto size = runtime.length(args.pos[0]);
  if (size && static_cast<Int>(*size) <= length + leeway) return args.pos[0];
  const StrPtr& s = must_be_text(args.pos[0]);
  StrPtr kept =
      substr(runtime.budget(), s, 0, s->offset_of(static_cast<std::size_t>(length - end_length)));
  if (!kill_words) {
    const std::size_t space =
        find_last_text(runtime.budget(), kept->text(), " ", kept->text().size());
    if (space != kNowhere) kept = substr(runtime.budget(), kept, 0, space);
  }
  StrBuilder out(runtime.budget());
  out.append(*kept);
  out.append(*end);
  return Value::string(out.finish(s->markup()));
}

Value file_size(Runtime& runtime, Args& args) {
  const auto bytes = to_float(args.pos[0]);
  if (!bytes) fault("could not convert to float: " + runtime.repr_text(args.pos[0]));
  const bool binary = args.has(1) && runtime.truthy(args.pos[1]);
  const double base = binary ? 1024 : 1000;
  if (*bytes == 1) return runtime.str("1 Byte");
  if (*bytes < base)
    return runtime.str(
        float_text(std::trunc(*bytes)).substr(0, float_text(std::trunc(*bytes)).find('.')) +
        " Bytes");
  constexpr const char* kPrefixes = "kMGTPEZY";
  double unit = base * base;
  int prefix = 0;
  for (; prefix < 7 && *bytes >= unit; ++prefix) unit *= base;
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.1f %c%s", base * *bytes / unit,
                binary && prefix == 0 ? 'K' : kPrefixes[prefix], binary ? "iB" : "B");
  return runtime.str(buffer);
}

constexpr Builtin kFilters[] = {
    {"center", "value width", 1, center},
    {"filesizeformat", "value binary", 1, file_size},
    {"indent", "s width first blank", 1, indent},
    {"truncate", "s length killwords end leeway", 1, truncate},
};

}  // namespace

std::span<const Builtin> layout_filters() { return kFilters; }

}  // namespace dunlin::jinja
