// Attribute and item access, slices, calls.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "text/jinja/builtins.h"
#include "text/jinja/compare.h"
#include "text/jinja/nesting.h"
#include "text/jinja/runtime.h"
#include "text/jinja/unicode.h"

namespace dunlin::jinja {
namespace {

bool hashable(const Value& value) {
  if (const auto* tuple = value.as<Tuple>()) {
    const Nesting nesting(tuple->heap().budget());
    return std::all_of(tuple->items().begin(), tuple->items().end(), hashable);
  }
  return value.as<List>() == nullptr && value.as<Dict>() == nullptr;
}

// Where Python's index lands in a sequence of `size`; nothing when out of range.
std::optional<std::size_t> position(Int index, std::size_t size) {
  const Int length = static_cast<Int>(size);
  if (index < 0) index += length;
  if (index < 0 || index >= length) return std::nullopt;
  return static_cast<std::size_t>(index);
}

std::string object_words(const Value& object) {
  return object.is_none() ? "None" : std::string(type_name(object)) + " object";
}

Value no_attribute(const Value& object, std::string_view name) {
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", object_words(object), name));
}

struct SliceRange {
  Int start;
  Int step;
  std::size_t count;
};

Int slice_index(const Value& value) {
  if (!value.is_integral()) {
    fault("slice indices must be integers or None or have an __index__ method");
  }
  return value.as_int();
}

// Python's PySlice_AdjustIndices: the positions that start:stop:step names in `size` items.
SliceRange resolve(const Value& start, const Value& stop, const Value& step, std::size_t size) {
  const auto absent = [](const Value& v) { return v.missing() || v.is_none(); };
  const Int length = static_cast<Int>(size);
  const Int by = absent(step) ? 1 : slice_index(step);
  if (by == 0) fault("slice step cannot be zero");
  const auto clamp = [&](const Value& v, Int otherwise) {
    if (absent(v)) return otherwise;
    Int i = slice_index(v);
    if (i < 0) i += length;
    const Int low = by < 0 ? -1 : 0;
    const Int high = by < 0 ? length - 1 : length;
    return std::clamp(i, low, high);
  };
  const Int from = clamp(start, by < 0 ? length - 1 : 0);
  const Int to = clamp(stop, by < 0 ? Int{-1} : length);
  Int count = 0;
  if (by > 0 && from < to) count = (to - from - 1) / by + 1;
  if (by < 0 && from > to) count = (from - to - 1) / -by + 1;
  return {from, by, static_cast<std::size_t>(count)};
}

std::vector<Value> pick(Runtime& runtime, const std::vector<Value>& items,
                        const SliceRange& range) {
  runtime.budget().step(range.count);
  std::vector<Value> out;
  out.reserve(range.count);
  for (std::size_t i = 0; i < range.count; ++i) {
    out.push_back(items[static_cast<std::size_t>(range.start + static_cast<Int>(i) * range.step)]);
  }
  return out;
}

Value slice_text(Runtime& runtime, const Value& value, const SliceRange& range) {
  const Str& s = value.str();
  if (range.count == 0) return runtime.str("");
  if (range.step == 1) {
    const std::size_t begin = s.offset_of(static_cast<std::size_t>(range.start));
    const std::size_t end = s.offset_of(static_cast<std::size_t>(range.start) + range.count);
    return Value::string(substr(runtime.budget(), value.str_ptr(), begin, end));
  }
  std::vector<std::uint32_t> offsets;  // where each code point starts
  if (!s.ascii()) {
    runtime.budget().scan(s.text().size());
    for (std::size_t at = 0; at < s.text().size(); at += sequence_length(s.text()[at])) {
      offsets.push_back(static_cast<std::uint32_t>(at));
    }
  }
  StrBuilder out(runtime.budget());
  for (std::size_t i = 0; i < range.count; ++i) {
    const auto index = static_cast<std::size_t>(range.start + static_cast<Int>(i) * range.step);
    const std::size_t begin = s.ascii() ? index : offsets[index];
    out.append(s, begin, begin + sequence_length(s.text()[begin]));
  }
  return Value::string(out.finish(s.markup()));
}

}  // namespace

Int to_index(const Value& value) {
  if (value.is_undefined()) fault(value.as_undefined().message);
  if (!value.is_integral()) {
    fault(fmt::format("'{}' object cannot be interpreted as an integer", type_name(value)));
  }
  return value.as_int();
}

std::size_t to_size(const Value& value) {
  constexpr Int kHuge = Int{1} << 40;
  return static_cast<std::size_t>(std::clamp<Int>(to_index(value), 0, kHuge));
}

Value Runtime::list(std::vector<Value> items) { return make<List>(std::move(items)); }
Value Runtime::tuple(std::vector<Value> items) { return make<Tuple>(std::move(items)); }

Value Runtime::real_attribute(const Value& object, std::string_view name) {
  if (object.is_object()) {
    Value found = object.object().attribute(*this, object, name);
    if (!found.missing()) return found;
  }
  const Builtin* method = find_method(object, name);
  return method != nullptr ? make<Function>(*method, object) : Value();
}

Value Runtime::real_item(const Value& object, const Value& key) {
  if (const auto* dict = object.as<Dict>()) {
    if (!hashable(key)) return Value();
    const Value* found = dict->find(key);
    return found != nullptr ? *found : Value();
  }
  if (!key.is_integral()) return Value();
  if (object.is_string()) {
    const auto at = position(key.as_int(), object.str().length());
    if (!at) return Value();
    const std::size_t begin = object.str().offset_of(*at);
    return Value::string(
        substr(budget_, object.str_ptr(), begin, begin + sequence_length(object.text()[begin])));
  }
  const List* list = object.as<List>();
  const Tuple* tuple = object.as<Tuple>();
  if (list != nullptr || tuple != nullptr) {
    const auto& items = list != nullptr ? list->items() : tuple->items();
    const auto at = position(key.as_int(), items.size());
    return at ? items[*at] : Value();
  }
  if (const auto* range = object.as<Range>()) {
    const auto at = position(key.as_int(), range->length());
    return at ? Value::integer(range->at(*at)) : Value();
  }
  return Value();
}

Value Runtime::own_attribute(const Value& object, std::string_view name) {
  if (object.is_undefined()) fault(object.as_undefined().message);
  Value found = real_attribute(object, name);
  return found.missing() ? no_attribute(object, name) : found;
}

Value Runtime::attribute(const Value& object, std::string_view name) {
  budget_.step();
  if (object.is_undefined()) fault(object.as_undefined().message);
  Value found = real_attribute(object, name);
  if (!found.missing()) return found;
  if (const auto* dict = object.as<Dict>()) {
    if (const Value* item = dict->find(name)) return *item;
  }
  return no_attribute(object, name);
}

Value Runtime::item(const Value& object, const Value& key) {
  budget_.step();
  if (object.is_undefined()) fault(object.as_undefined().message);
  Value found = real_item(object, key);
  if (!found.missing()) return found;
  if (!key.is_string()) {
    return Value::undefined(object_words(object) + " has no element " + repr_text(key));
  }
  found = real_attribute(object, key.text());
  if (!found.missing()) return found;
  return Value::undefined(
      fmt::format("'{}' has no attribute {}", object_words(object), repr_text(key)));
}

Value Runtime::slice(const Value& object, const Value& start, const Value& stop,
                     const Value& step) {
  if (object.is_undefined()) fault(object.as_undefined().message);
  if (object.is_string()) {
    return slice_text(*this, object, resolve(start, stop, step, object.str().length()));
  }
  if (const auto* list_object = object.as<List>()) {
    const auto& items = list_object->items();
    return list(pick(*this, items, resolve(start, stop, step, items.size())));
  }
  if (const auto* tuple_object = object.as<Tuple>()) {
    const auto& items = tuple_object->items();
    return tuple(pick(*this, items, resolve(start, stop, step, items.size())));
  }
  if (const auto* range = object.as<Range>()) {
    const SliceRange part = resolve(start, stop, step, range->length());
    const Int first = range->start() + part.start * range->step();
    const Int by = range->step() * part.step;
    return make<Range>(first, first + by * static_cast<Int>(part.count), by);
  }
  if (object.as<Dict>() != nullptr) fault("unhashable type: 'slice'");
  fault(fmt::format("'{}' object is not subscriptable", type_name(object)));
}

Value Runtime::path(const Value& object, const Value& path, const Value& fallback) {
  if (path.missing() || path.is_none()) return object;
  Value at = object;
  const auto step_into = [&](const Value& key) {
    at = item(at, key);
    if (at.is_undefined() && !fallback.missing() && !fallback.is_none()) at = fallback;
  };
  if (!path.is_string()) {
    step_into(path);
    return at;
  }
  std::string_view rest = path.text();
  while (true) {
    const std::size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    long long number = 0;
    const auto parsed = std::from_chars(part.data(), part.data() + part.size(), number);
    const bool digits = !part.empty() && part[0] != '-' && parsed.ec == std::errc() &&
                        parsed.ptr == part.data() + part.size();
    step_into(digits ? Value::integer(number) : str(std::string(part)));
    if (dot == std::string_view::npos) return at;
    rest.remove_prefix(dot + 1);
  }
}

Value Runtime::call(const Value& callee, Args& args) {
  budget_.step();
  if (callee.is_undefined()) fault(callee.as_undefined().message);
  if (callee.is_object()) return callee.object().call(*this, args);
  fault(fmt::format("'{}' object is not callable", type_name(callee)));
}

}  // namespace dunlin::jinja
