// The tables of what templates can call: filters, tests, methods and global functions. One row a
// name; adding one is one row and one function.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "text/jinja/runtime.h"

namespace dunlin::jinja {

struct Builtin {
  std::string_view name;
  // Parameter names between spaces; the first is the filtered value, the tested value or the
  // method's own object. "*" takes the arguments as they come.
  std::string_view params;
  std::size_t required;
  Value (*function)(Runtime&, Args&);
};

// Lays `args` out by the builtin's parameters, positional and named; faults as Python's TypeError.
void bind(const Builtin& builtin, Args& args);
inline Value invoke(Runtime& runtime, const Builtin& builtin, Args& args) {
  bind(builtin, args);
  return builtin.function(runtime, args);
}

const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_method(const Value& self, std::string_view name);
// Fills (name, value) with range, dict, namespace, cycler, joiner, raise_exception, strftime_now.
std::vector<std::pair<std::string_view, Value>> make_globals(Runtime& runtime);

// A method with its object, or a global function.
class Function : public Object {
 public:
  Function(Heap& heap, const Builtin& builtin, Value self)
      : Object(heap), builtin_(builtin), self_(std::move(self)) {}
  ~Function() override { bury_all(); }
  std::string_view type_name() const override { return "builtin_function_or_method"; }
  void release(std::vector<Value>& out) override { out.push_back(std::move(self_)); }
  bool callable() const override { return true; }
  Value call(Runtime& runtime, Args& args) override;
  void print(Runtime& runtime, StrBuilder& out) const override;

 private:
  const Builtin& builtin_;
  Value self_;
};

// The tables' parts, one a file.
std::span<const Builtin> text_filters();      // filters_text.cc
std::span<const Builtin> layout_filters();    // filters_layout.cc
std::span<const Builtin> sequence_filters();  // filters_sequence.cc
std::span<const Builtin> select_filters();    // filters_select.cc
std::span<const Builtin> number_filters();    // filters_number.cc
std::span<const Builtin> string_methods();    // methods_string.cc
std::span<const Builtin> search_methods();    // methods_search.cc
std::span<const Builtin> shape_methods();     // methods_shape.cc

// tojson: Python's json.dumps (json_dump.cc). `indent` and `separators` as given by the template.
struct JsonStyle {
  bool ascii = false;
  bool sort_keys = false;
  bool multi_line = false;
  StrPtr indent;          // one level, where multi_line
  StrPtr item_separator;  // ", " or ","
  StrPtr key_separator;   // ": "
};
void dump_json(Runtime& runtime, const Value& value, const JsonStyle& style, StrBuilder& out);
Value to_json(Runtime& runtime, Args& args);

// `format % values` (format_printf.cc) and format.format(...) (format_braces.cc).
Value format_printf(Runtime& runtime, const Value& format, const Value& values);
Value format_braces(Runtime& runtime, const Value& format, const Args& args, const Value& mapping);
// A value under a format spec such as ">10.2f" (format_spec.cc).
void format_with_spec(Runtime& runtime, const Value& value, std::string_view spec, StrBuilder& out);

// Text with & < > ' " as HTML entities; markup is left as it is.
StrPtr escape_html(Runtime& runtime, const Value& value);

}  // namespace dunlin::jinja
