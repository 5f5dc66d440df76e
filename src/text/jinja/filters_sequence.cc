// Filters over sequences and dicts as wholes.
#include <algorithm>

#include <fmt/format.h>

#include "text/jinja/arithmetic.h"
#include "text/jinja/builtins.h"
#include "text/jinja/compare.h"
#include "text/jinja/containers.h"
#include "text/jinja/text_ops.h"

namespace dunlin::jinja {
namespace {

bool flag(Runtime& runtime, const Args& args, std::size_t i) {
  return args.has(i) && runtime.truthy(args.pos[i]);
}

Value first(Runtime& runtime, Args& args) {
  Value item;
  if (runtime.iterate(args.pos[0])->next(runtime, item)) return item;
  return Value::undefined("No first item, sequence was empty.");
}

Value last(Runtime& runtime, Args& args) {
  const Value& value = args.pos[0];
  const auto length = runtime.length(value);
  if (!length) fault(fmt::format("'{}' object is not reversible", type_name(value)));
  if (*length == 0) return Value::undefined("No last item, sequence was empty.");
  const auto at_end = [&](const Value& v) { return runtime.item(v, Value::integer(-1)); };
  if (value.as<Dict>() != nullptr) return value.as<Dict>()->entries().back().first;
  if (const auto* view = value.as<DictView>()) return view->at(runtime, *length - 1);
  return at_end(value);
}

Value length(Runtime& runtime, Args& args) {
  const auto size = runtime.length(args.pos[0]);
  if (!size) fault("object of type '" + std::string(type_name(args.pos[0])) + "' has no len()");
  return Value::integer(static_cast<Int>(*size));
}

Value list(Runtime& runtime, Args& args) { return runtime.list(runtime.collect(args.pos[0])); }

Value join_filter(Runtime& runtime, Args& args) {
  const StrPtr separator =
      args.has(1) ? runtime.to_str(args.pos[1]) : make_str(runtime.budget(), "");
  const auto source = runtime.iterate(args.pos[0]);
  StrBuilder out(runtime.budget());
  bool is_first = true;
  for (Value item; source->next(runtime, item);) {
    if (!is_first) out.append(*separator);
    is_first = false;
    runtime.print(args.has(2) ? runtime.path(item, args.pos[2]) : item, out);
  }
  return Value::string(out.finish());
}

Value reverse(Runtime& runtime, Args& args) {
  const Value& value = args.pos[0];
  if (value.is_string()) {
    return runtime.slice(value, Value::none(), Value::none(), Value::integer(-1));
  }
  if (!runtime.iterable(value)) fault("argument must be iterable");
  std::vector<Value> items = runtime.collect(value);
  std::reverse(items.begin(), items.end());
  return runtime.length(value) ? generator_of(runtime, std::move(items))
                               : runtime.list(std::move(items));
}

// The attributes "a,b.c" of an item, compared without case unless told otherwise.
Value sort_key(Runtime& runtime, const Value& item, const Value& attribute, bool case_sensitive) {
  std::vector<Value> parts;
  if (attribute.is_string() && attribute.text().find(',') != std::string::npos) {
    const auto comma = make_str(runtime.budget(), ",");
    parts = split(runtime, attribute.str_ptr(), comma.get(), kNoLimit);
  } else {
    parts.push_back(attribute);
  }
  for (Value& part : parts) {
    part = runtime.path(item, part);
    if (!case_sensitive) part = ignore_case(runtime, part);
  }
  return runtime.list(std::move(parts));  // a list, as in Jinja: equal parts are not ordered
}

Value sort(Runtime& runtime, Args& args) {
  std::vector<Value> items = runtime.collect(args.pos[0]);
  const Value attribute = args.has(3) ? args.pos[3] : Value::none();
  std::vector<Value> keys;
  for (const Value& item : items) {
    keys.push_back(sort_key(runtime, item, attribute, flag(runtime, args, 2)));
  }
  sort_values(runtime, items, keys, flag(runtime, args, 1));
  return runtime.list(std::move(items));
}

Value unique(Runtime& runtime, Args& args) {
  auto seen = runtime.dict();
  std::vector<Value> kept;
  const auto source = runtime.iterate(args.pos[0]);
  for (Value item; source->next(runtime, item);) {
    Value key = args.has(2) ? runtime.path(item, args.pos[2]) : item;
    if (!flag(runtime, args, 1)) key = ignore_case(runtime, key);
    if (seen->find(key) != nullptr) continue;
    seen->set(key, Value::none());
    kept.push_back(item);
  }
  return generator_of(runtime, std::move(kept));
}

Value dict_sort(Runtime& runtime, Args& args) {
  const auto* dict = args.pos[0].as<Dict>();
  if (args.pos[0].is_undefined()) fault(args.pos[0].as_undefined().message);
  if (dict == nullptr) {
    fault(fmt::format("'{} object' has no attribute 'items'", type_name(args.pos[0])));
  }
  const std::string by = args.has(2) && args.pos[2].is_string() ? args.pos[2].text() : "key";
  if (by != "key" && by != "value") fault("You can only sort by either \"key\" or \"value\"");
  std::vector<Value> items, keys;
  for (const auto& [key, value] : dict->entries()) {
    items.push_back(runtime.tuple({key, value}));
    const Value& chosen = by == "key" ? key : value;
    keys.push_back(flag(runtime, args, 1) ? chosen : ignore_case(runtime, chosen));
  }
  sort_values(runtime, items, keys, flag(runtime, args, 3));
  return runtime.list(std::move(items));
}

Value items(Runtime& runtime, Args& args) {
  if (args.pos[0].is_undefined()) return generator_of(runtime, {});
  if (args.pos[0].as<Dict>() == nullptr) fault("Can only get item pairs from a mapping.");
  return Value::object(
      runtime.iterate(runtime.make<DictView>(args.pos[0], DictView::Part::kItems)));
}

Value batch(Runtime& runtime, Args& args) {
  const Int count = to_index(args.pos[1]);
  std::vector<Value> batches, current;
  const auto source = runtime.iterate(args.pos[0]);
  for (Value item; source->next(runtime, item);) {
    if (static_cast<Int>(current.size()) == count) {
      batches.push_back(runtime.list(std::move(current)));
      current.clear();
    }
    current.push_back(item);
  }
  if (!current.empty()) {
    if (args.has(2) && !args.pos[2].is_none()) {
      const std::size_t full = to_size(args.pos[1]);
      if (full > runtime.budget().limits().range_items) limit_fault("batch fills too many items");
      while (current.size() < full) current.push_back(args.pos[2]);
    }
    batches.push_back(runtime.list(std::move(current)));
  }
  return generator_of(runtime, std::move(batches));
}

Value slice(Runtime& runtime, Args& args) {
  const std::vector<Value> all = runtime.collect(args.pos[0]);
  const std::size_t slices = to_size(args.pos[1]);
  if (slices == 0) fault("integer division or modulo by zero");
  if (slices > runtime.budget().limits().range_items) limit_fault("slice makes too many parts");
  const std::size_t per_slice = all.size() / slices;
  const std::size_t with_extra = all.size() % slices;
  std::vector<Value> parts;
  std::size_t at = 0;
  for (std::size_t i = 0; i < slices; ++i) {
    const std::size_t end = at + per_slice + (i < with_extra ? 1 : 0);
    std::vector<Value> part(all.begin() + static_cast<std::ptrdiff_t>(at),
                            all.begin() + static_cast<std::ptrdiff_t>(end));
    if (args.has(2) && !args.pos[2].is_none() && i >= with_extra) part.push_back(args.pos[2]);
    parts.push_back(runtime.list(std::move(part)));
    at = end;
  }
  return generator_of(runtime, std::move(parts));
}

Value group_by(Runtime& runtime, Args& args) {
  std::vector<Value> all = runtime.collect(args.pos[0]);
  const Value fallback = args.has(2) ? args.pos[2] : Value();
  const bool case_sensitive = flag(runtime, args, 3);
  std::vector<Value> keys;
  for (const Value& item : all) {
    const Value key = runtime.path(item, args.pos[1], fallback);
    keys.push_back(case_sensitive ? key : ignore_case(runtime, key));
  }
  std::vector<Value> sorted_keys = keys;
  sort_values(runtime, all, keys, false);
  sort_values(runtime, sorted_keys, keys, false);
  std::vector<Value> groups;
  for (std::size_t begin = 0; begin < all.size();) {
    std::size_t end = begin + 1;
    while (end < all.size() && equal(runtime.budget(), sorted_keys[begin], sorted_keys[end])) ++end;
    std::vector<Value> members(all.begin() + static_cast<std::ptrdiff_t>(begin),
                               all.begin() + static_cast<std::ptrdiff_t>(end));
    const Value key = runtime.path(all[begin], args.pos[1], fallback);
    Value group = runtime.tuple({key, runtime.list(std::move(members))});
    group.as<Tuple>()->name_as_group();
    groups.push_back(std::move(group));
    begin = end;
  }
  return runtime.list(std::move(groups));
}

template <bool largest>
Value extreme(Runtime& runtime, Args& args) {
  const auto source = runtime.iterate(args.pos[0]);
  const bool case_sensitive = flag(runtime, args, 1);
  Value best, best_key;
  for (Value item; source->next(runtime, item);) {
    Value key = args.has(2) ? runtime.path(item, args.pos[2]) : item;
    if (!case_sensitive) key = ignore_case(runtime, key);
    const bool better =
        best.missing() || (largest ? order(runtime.budget(), key, best_key, ">") > 0
                                   : order(runtime.budget(), key, best_key, "<") < 0);
    if (!better) continue;
    best = item;
    best_key = key;
  }
  return best.missing() ? Value::undefined("No aggregated item, sequence was empty.") : best;
}

Value sum(Runtime& runtime, Args& args) {
  Value total = args.has(2) ? args.pos[2] : Value::integer(0);
  if (total.is_string()) fault("sum() can't sum strings [use ''.join(seq) instead]");
  const auto source = runtime.iterate(args.pos[0]);
  for (Value item; source->next(runtime, item);) {
    if (args.has(1)) item = runtime.path(item, args.pos[1]);
    total = arithmetic(runtime, Arithmetic::kAdd, total, item);
  }
  return total;
}

constexpr Builtin kFilters[] = {
    {"batch", "value linecount fill_with", 2, batch},
    {"count", "value", 1, length},
    {"dictsort", "value case_sensitive by reverse", 1, dict_sort},
    {"first", "seq", 1, first},
    {"groupby", "value attribute default case_sensitive", 2, group_by},
    {"items", "value", 1, items},
    {"join", "value d attribute", 1, join_filter},
    {"last", "seq", 1, last},
    {"length", "value", 1, length},
    {"list", "value", 1, list},
    {"max", "value case_sensitive attribute", 1, extreme<true>},
    {"min", "value case_sensitive attribute", 1, extreme<false>},
    {"reverse", "value", 1, reverse},
    {"slice", "value slices fill_with", 2, slice},
    {"sort", "value reverse case_sensitive attribute", 1, sort},
    {"sum", "iterable attribute start", 1, sum},
    {"unique", "value case_sensitive attribute", 1, unique},
};

}  // namespace

std::span<const Builtin> sequence_filters() { return kFilters; }

}  // namespace dunlin::jinja
