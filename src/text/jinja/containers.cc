#include "text/jinja/containers.h"

#include <algorithm>
#include <numeric>

#include "text/jinja/compare.h"
#include "text/jinja/text_ops.h"

namespace dunlin::jinja {

void sort_values(Runtime& runtime, std::vector<Value>& items, const std::vector<Value>& keys,
                 bool reverse) {
  std::vector<std::size_t> places(items.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    if (reverse) std::swap(a, b);
    return order(runtime.budget(), keys[a], keys[b], "<") < 0;
  });
  std::vector<Value> sorted;
  sorted.reserve(items.size());
  for (const std::size_t place : places) sorted.push_back(items[place]);
  items = std::move(sorted);
}

void fill_dict(Runtime& runtime, Dict& dict, const Args& args, std::size_t from) {
  if (args.pos.size() > from) {
    const Value& source = args.pos[from];
    if (const auto* other = source.as<Dict>()) {
      const std::vector<Dict::Entry> entries = other->entries();
      for (const auto& [key, value] : entries) dict.set(key, value);
    } else {
      std::size_t index = 0;
      for (const Value& pair : runtime.collect(source)) {
        const std::vector<Value> parts = runtime.collect(pair);
        if (parts.size() != 2) {
          fault("dictionary update sequence element #" + std::to_string(index) + " has length " +
                std::to_string(parts.size()) + "; 2 is required");
        }
        dict.set(parts[0], parts[1]);
        ++index;
      }
    }
  }
  for (const auto& [name, value] : args.named) dict.set(Value::string(name), value);
}

Value ignore_case(Runtime& runtime, const Value& value) {
  if (!value.is_string()) return value;
  return Value::string(change_case(runtime.budget(), value.str_ptr(), Case::kLower));
}

Value generator_of(Runtime& runtime, std::vector<Value> items) {
  return Value::object(runtime.iterate(runtime.list(std::move(items))));
}

}  // namespace dunlin::jinja
