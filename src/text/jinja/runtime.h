// Python's protocols over Value: printing, iterating, looking up, slicing, calling. Together with
// arithmetic.h and builtins.h this is the language below the syntax tree.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace dunlin::jinja {

// One render's world. Not thread-safe.
class Runtime {
 public:
  Runtime(Budget& budget, Heap& heap, long long now) : budget_(budget), heap_(heap), now_(now) {}

  Budget& budget() { return budget_; }
  Heap& heap() { return heap_; }
  long long now() const { return now_; }  // Unix time, for strftime_now

  // New values.
  Value str(std::string text) { return Value::string(make_str(budget_, std::move(text))); }
  Value list(std::vector<Value> items);
  Value tuple(std::vector<Value> items);
  std::shared_ptr<Dict> dict() { return std::make_shared<Dict>(heap_); }
  template <typename T, typename... A>
  Value make(A&&... arguments) {
    return Value::object(std::make_shared<T>(heap_, std::forward<A>(arguments)...));
  }

  // str() and repr().
  void print(const Value& value, StrBuilder& out);
  void repr(const Value& value, StrBuilder& out);
  StrPtr to_str(const Value& value);  // a string is given back as it is
  std::string repr_text(const Value& value);

  bool truthy(const Value& value);
  // len(); nothing where the type has none.
  std::optional<std::size_t> length(const Value& value);
  // iter(): faults on what can't be iterated.
  std::shared_ptr<Iterator> iterate(const Value& value);
  bool iterable(const Value& value);
  std::vector<Value> collect(const Value& value);  // list(value)
  bool contains(const Value& container, const Value& item);

  // The sandboxed lookups of Jinja: x.name tries attributes first, x[key] items first; what is not
  // there is undefined.
  Value attribute(const Value& object, std::string_view name);
  Value item(const Value& object, const Value& key);
  Value slice(const Value& object, const Value& start, const Value& stop, const Value& step);
  // The attribute alone, never an item (the attr filter).
  Value own_attribute(const Value& object, std::string_view name);
  // "a.b.0" as |map(attribute=...) and its like read it; none gives the object itself.
  Value path(const Value& object, const Value& path, const Value& fallback = Value());

  Value call(const Value& callee, Args& args);

 private:
  Value real_attribute(const Value& object, std::string_view name);
  Value real_item(const Value& object, const Value& key);

  Budget& budget_;
  Heap& heap_;
  long long now_;
};

std::string int_text(Int value);
std::string float_text(double value);  // Python's repr: shortest that reads back
// Python's repr of a string, quotes included.
void repr_string(const Str& s, StrBuilder& out);

// The value as an index; faults "'str' object cannot be interpreted as an integer".
Int to_index(const Value& value);
// The same, clamped to what a size can be; negative values are 0.
std::size_t to_size(const Value& value);

}  // namespace dunlin::jinja
