// Methods of list, tuple and dict. Unlike the sandbox of transformers this one lets a template
// change its lists and dicts (append, pop, update, ...): they are copies made for one render.
#include <algorithm>

#include "text/jinja/builtins.h"
#include "text/jinja/compare.h"
#include "text/jinja/containers.h"

namespace dunlin::jinja {
namespace {

List& list_of(Args& args) { return *args.pos[0].as<List>(); }
Dict& dict_of(Args& args) { return *args.pos[0].as<Dict>(); }
const std::vector<Value>& items_of(const Value& value) {
  const auto* list = value.as<List>();
  return list != nullptr ? list->items() : value.as<Tuple>()->items();
}

Value append(Runtime&, Args& args) {
  list_of(args).append(args.pos[1]);
  return Value::none();
}

Value clear_list(Runtime& runtime, Args& args) {
  std::vector<Value> held;
  held.swap(list_of(args).mutable_items());
  runtime.heap().bury(held);
  return Value::none();
}

Value copy_list(Runtime& runtime, Args& args) { return runtime.list(list_of(args).items()); }

Value count(Runtime& runtime, Args& args) {
  const auto& items = items_of(args.pos[0]);
  return Value::integer(std::count_if(items.begin(), items.end(), [&](const Value& item) {
    return equal(runtime.budget(), item, args.pos[1]);
  }));
}

Value extend(Runtime& runtime, Args& args) {
  for (Value& item : runtime.collect(args.pos[1])) list_of(args).append(std::move(item));
  return Value::none();
}

std::size_t find_item(Runtime& runtime, const Args& args) {
  const auto& items = items_of(args.pos[0]);
  const auto it = std::find_if(items.begin(), items.end(), [&](const Value& item) {
    return equal(runtime.budget(), item, args.pos[1]);
  });
  return static_cast<std::size_t>(it - items.begin());
}

Value index(Runtime& runtime, Args& args) {
  const std::size_t at = find_item(runtime, args);
  if (at == items_of(args.pos[0]).size()) {
    fault(runtime.repr_text(args.pos[1]) + " is not in " + std::string(type_name(args.pos[0])));
  }
  return Value::integer(static_cast<Int>(at));
}

Value insert(Runtime& runtime, Args& args) {
  List& list = list_of(args);
  const Int size = static_cast<Int>(list.items().size());
  Int at = to_index(args.pos[1]);
  at = std::clamp<Int>(at < 0 ? at + size : at, 0, size);
  runtime.budget().step(list.items().size() / 16);
  list.append(args.pos[2]);
  auto& items = list.mutable_items();
  std::rotate(items.begin() + static_cast<std::ptrdiff_t>(at), items.end() - 1, items.end());
  return Value::none();
}

Value pop_list(Runtime& runtime, Args& args) {
  auto& items = list_of(args).mutable_items();
  if (items.empty()) fault("pop from empty list");
  const Int size = static_cast<Int>(items.size());
  Int at = args.has(1) ? to_index(args.pos[1]) : -1;
  if (at < 0) at += size;
  if (at < 0 || at >= size) fault("pop index out of range");
  runtime.budget().step(items.size() / 16);
  const auto it = items.begin() + static_cast<std::ptrdiff_t>(at);
  Value taken = std::move(*it);
  items.erase(it);
  return taken;
}

Value remove(Runtime& runtime, Args& args) {
  auto& items = list_of(args).mutable_items();
  const std::size_t at = find_item(runtime, args);
  if (at == items.size()) fault("list.remove(x): x not in list");
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  return Value::none();
}

Value reverse(Runtime& runtime, Args& args) {
  auto& items = list_of(args).mutable_items();
  runtime.budget().step(items.size());
  std::reverse(items.begin(), items.end());
  return Value::none();
}

Value sort(Runtime& runtime, Args& args) {
  std::vector<Value> items = list_of(args).items();
  sort_values(runtime, items, items, args.has(1) && runtime.truthy(args.pos[1]));
  list_of(args).mutable_items() = std::move(items);
  return Value::none();
}

template <DictView::Part part>
Value view(Runtime& runtime, Args& args) {
  return runtime.make<DictView>(args.pos[0], part);
}

Value get(Runtime&, Args& args) {
  const Value* found = dict_of(args).find(args.pos[1]);
  if (found != nullptr) return *found;
  return args.has(2) ? args.pos[2] : Value::none();
}

Value copy_dict(Runtime& runtime, Args& args) {
  auto copy = runtime.dict();
  for (const auto& [key, value] : dict_of(args).entries()) copy->set(key, value);
  return Value::object(copy);
}

Value clear_dict(Runtime&, Args& args) {
  dict_of(args).clear();
  return Value::none();
}

Value pop_dict(Runtime& runtime, Args& args) {
  const Value* found = dict_of(args).find(args.pos[1]);
  if (found == nullptr) {
    if (args.has(2)) return args.pos[2];
    fault(runtime.repr_text(args.pos[1]));
  }
  Value taken = *found;
  dict_of(args).erase(args.pos[1]);
  return taken;
}

Value pop_item(Runtime& runtime, Args& args) {
  if (dict_of(args).entries().empty()) fault("popitem(): dictionary is empty");
  const Dict::Entry last = dict_of(args).entries().back();
  dict_of(args).erase(last.first);
  return runtime.tuple({last.first, last.second});
}

Value set_default(Runtime&, Args& args) {
  if (const Value* found = dict_of(args).find(args.pos[1])) return *found;
  Value value = args.has(2) ? args.pos[2] : Value::none();
  dict_of(args).set(args.pos[1], value);
  return value;
}

Value update(Runtime& runtime, Args& args) {
  if (args.pos.size() > 2) fault("update expected at most 1 argument");
  fill_dict(runtime, dict_of(args), args, 1);
  return Value::none();
}

Value count_in_range(Runtime& runtime, Args& args) {
  return Value::integer(runtime.contains(args.pos[0], args.pos[1]) ? 1 : 0);
}

Value index_in_range(Runtime& runtime, Args& args) {
  const Range& range = *args.pos[0].as<Range>();
  for (std::size_t i = 0; i < range.length(); ++i) {
    if (equal(runtime.budget(), Value::integer(range.at(i)), args.pos[1])) {
      return Value::integer(static_cast<Int>(i));
    }
  }
  fault(runtime.repr_text(args.pos[1]) + " is not in range");
}

Value is_integer(Runtime&, Args& args) {
  const double x = args.pos[0].as_float();
  return Value::boolean(x - x == 0 && x == static_cast<double>(static_cast<long long>(x)));
}

constexpr Builtin kList[] = {
    {"append", "self object", 2, append},
    {"clear", "self", 1, clear_list},
    {"copy", "self", 1, copy_list},
    {"count", "self value", 2, count},
    {"extend", "self iterable", 2, extend},
    {"index", "self value", 2, index},
    {"insert", "self index object", 3, insert},
    {"pop", "self index", 1, pop_list},
    {"remove", "self value", 2, remove},
    {"reverse", "self", 1, reverse},
    {"sort", "self reverse", 1, sort},
};
constexpr Builtin kTuple[] = {{"count", "self value", 2, count}, {"index", "self value", 2, index}};
constexpr Builtin kRange[] = {{"count", "self value", 2, count_in_range},
                              {"index", "self value", 2, index_in_range}};
constexpr Builtin kDict[] = {
    {"clear", "self", 1, clear_dict},
    {"copy", "self", 1, copy_dict},
    {"get", "self key default", 2, get},
    {"items", "self", 1, view<DictView::Part::kItems>},
    {"keys", "self", 1, view<DictView::Part::kKeys>},
    {"pop", "self key default", 2, pop_dict},
    {"popitem", "self", 1, pop_item},
    {"setdefault", "self key default", 2, set_default},
    {"update", "*", 1, update},
    {"values", "self", 1, view<DictView::Part::kValues>},
};
constexpr Builtin kFloat[] = {{"is_integer", "self", 1, is_integer}};

const Builtin* search(std::span<const Builtin> table, std::string_view name) {
  for (const Builtin& builtin : table) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

}  // namespace

const Builtin* find_method(const Value& self, std::string_view name) {
  if (self.is_string()) {
    for (const auto table : {search_methods(), string_methods(), shape_methods()}) {
      if (const Builtin* found = search(table, name)) return found;
    }
    return nullptr;
  }
  if (self.is_float()) return search(kFloat, name);
  if (!self.is_object()) return nullptr;
  if (self.as<Dict>() != nullptr) return search(kDict, name);
  if (self.as<List>() != nullptr) return search(kList, name);
  if (self.as<Range>() != nullptr) return search(kRange, name);
  return self.as<Tuple>() != nullptr ? search(kTuple, name) : nullptr;
}

}  // namespace dunlin::jinja
