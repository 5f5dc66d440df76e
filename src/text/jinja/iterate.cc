// len(), iter(), list() and `in`.
#include <cstring>

#include <fmt/format.h>

#include "text/jinja/compare.h"
#include "text/jinja/runtime.h"
#include "text/jinja/unicode.h"

namespace dunlin::jinja {
namespace {

// Over anything that has positions. A list that grows meanwhile is seen to its new end.
class SequenceIterator : public Iterator {
 public:
  SequenceIterator(Heap& heap, Value source) : Iterator(heap, 0), source_(std::move(source)) {}
  ~SequenceIterator() override { bury_all(); }
  std::string_view type_name() const override { return "iterator"; }
  void release(std::vector<Value>& out) override { out.push_back(std::move(source_)); }

  bool next(Runtime& runtime, Value& out) override {
    runtime.budget().step();
    if (source_.is_string()) return next_character(runtime, out);
    if (!source_.is_object()) return false;
    if (const auto* list = source_.as<List>()) return next_of(list->items(), out);
    if (const auto* tuple = source_.as<Tuple>()) return next_of(tuple->items(), out);
    if (const auto* dict = source_.as<Dict>()) {
      if (at_ >= dict->entries().size()) return false;
      out = dict->entries()[at_++].first;
      return true;
    }
    if (const auto* view = source_.as<DictView>()) {
      if (at_ >= view->dict().entries().size()) return false;
      out = view->at(runtime, at_++);
      return true;
    }
    const auto* range = source_.as<Range>();
    if (range == nullptr || at_ >= range->length()) return false;
    out = Value::integer(range->at(at_++));
    return true;
  }

 private:
  bool next_of(const std::vector<Value>& items, Value& out) {
    if (at_ >= items.size()) return false;
    out = items[at_++];
    return true;
  }

  bool next_character(Runtime& runtime, Value& out) {
    const std::string& text = source_.text();
    if (at_ >= text.size()) return false;
    const std::size_t size = sequence_length(text[at_]);
    StrBuilder character(runtime.budget());
    character.append(source_.str(), at_, at_ + size);
    out = Value::string(character.finish());  // plain text even out of markup, as in Python
    at_ += size;
    return true;
  }

  Value source_;
  std::size_t at_ = 0;  // item, or byte of a string
};

bool has_positions(const Value& value) {
  return value.as<List>() != nullptr || value.as<Tuple>() != nullptr ||
         value.as<Dict>() != nullptr || value.as<DictView>() != nullptr ||
         value.as<Range>() != nullptr;
}

}  // namespace

bool Runtime::truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone: return false;
    case Kind::kBool:
    case Kind::kInt: return value.as_int() != 0;
    case Kind::kFloat: return value.as_float() != 0;
    default: return length(value).value_or(1) != 0;
  }
}

std::optional<std::size_t> Runtime::length(const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_string()) return value.str().length();
  if (!value.is_object()) return std::nullopt;
  if (const auto* list = value.as<List>()) return list->items().size();
  if (const auto* tuple = value.as<Tuple>()) return tuple->items().size();
  if (const auto* dict = value.as<Dict>()) return dict->entries().size();
  if (const auto* view = value.as<DictView>()) return view->dict().entries().size();
  if (const auto* range = value.as<Range>()) return range->length();
  return std::nullopt;
}

bool Runtime::iterable(const Value& value) {
  return value.is_undefined() || value.is_string() || has_positions(value) ||
         value.as<Iterator>() != nullptr;
}

std::shared_ptr<Iterator> Runtime::iterate(const Value& value) {
  if (value.as<Iterator>() != nullptr) {
    return std::static_pointer_cast<Iterator>(value.object_ptr());
  }
  if (!iterable(value)) fault(fmt::format("'{}' object is not iterable", type_name(value)));
  return std::make_shared<SequenceIterator>(heap_, value);
}

std::vector<Value> Runtime::collect(const Value& value) {
  if (const auto* list = value.as<List>()) return list->items();
  if (const auto* tuple = value.as<Tuple>()) return tuple->items();
  std::vector<Value> items;
  const auto source = iterate(value);
  // The vector itself is charged while it grows; whoever keeps it in a List charges it again.
  std::size_t charged = 0;
  struct GiveBack {
    Budget& budget;
    std::size_t& bytes;
    ~GiveBack() { budget.shrink(bytes); }
  } give_back{budget_, charged};
  for (Value item; source->next(*this, item); item = Value()) {
    budget_.grow(sizeof(Value));
    charged += sizeof(Value);
    items.push_back(std::move(item));
  }
  return items;
}

bool Runtime::contains(const Value& container, const Value& item) {
  if (container.is_string()) {
    if (!item.is_string()) {
      fault("'in <string>' requires string as left operand, not " + std::string(type_name(item)));
    }
    const std::string& text = container.text();
    budget_.scan(text.size());
    return memmem(text.data(), text.size(), item.text().data(), item.text().size()) != nullptr;
  }
  if (const auto* dict = container.as<Dict>()) return dict->find(item) != nullptr;
  if (const auto* view = container.as<DictView>();
      view != nullptr && view->part() == DictView::Part::kKeys) {
    return view->dict().find(item) != nullptr;
  }
  if (!iterable(container)) {
    fault("argument of type '" + std::string(type_name(container)) + "' is not iterable");
  }
  const auto source = iterate(container);
  for (Value each; source->next(*this, each);) {
    if (equal(budget_, each, item)) return true;
  }
  return false;
}

}  // namespace dunlin::jinja
