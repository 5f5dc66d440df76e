#include "text/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/compare.h"
#include "text/jinja/runtime.h"

namespace dunlin::jinja {
namespace {

constexpr std::size_t kObjectOverhead = 128;
constexpr std::size_t kIndexFrom = 8;  // entries: below, a walk is faster than a hash
constexpr int kMaxIteratorDepth = 64;

}  // namespace

Heap::~Heap() {
  burying_ = true;  // whatever dies below leaves its parts in graves_
  for (Object* object = first_; object != nullptr; object = object->next_) {
    object->release(graves_);
  }
  drain();
}

void Heap::drain() {
  while (!graves_.empty()) {
    const Value last = std::move(graves_.back());
    graves_.pop_back();
  }
  burying_ = false;
}

void Heap::bury(std::vector<Value>& values) {
  if (std::none_of(values.begin(), values.end(), [](const Value& v) { return v.is_object(); })) {
    values.clear();
    return;
  }
  if (burying_) {
    std::move(values.begin(), values.end(), std::back_inserter(graves_));
    values.clear();
    return;
  }
  burying_ = true;
  std::swap(graves_, values);
  drain();
}

Object::Object(Heap& heap) : heap_(heap) {
  charge(kObjectOverhead);
  next_ = heap.first_;
  if (next_ != nullptr) next_->previous_ = this;
  heap.first_ = this;
}

Object::~Object() {
  (previous_ != nullptr ? previous_->next_ : heap_.first_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  heap_.budget().shrink(charged_);
}

void Object::charge(std::size_t bytes) {
  heap_.budget().grow(bytes);
  charged_ += bytes;
}

void Object::bury_all() {
  std::vector<Value> held;
  release(held);
  heap_.bury(held);
}

Value Object::call(Runtime&, Args&) {
  fault(fmt::format("'{}' object is not callable", type_name()));
}

void Object::print(Runtime&, StrBuilder& out) const {
  out.append("<");
  out.append(type_name());
  out.append(" object>");
}

List::List(Heap& heap, std::vector<Value> items) : Object(heap) {
  charge(items.size() * sizeof(Value));
  items_ = std::move(items);
}

void List::release(std::vector<Value>& out) {
  if (out.empty()) {
    out.swap(items_);
    return;
  }
  std::move(items_.begin(), items_.end(), std::back_inserter(out));
  items_.clear();
}

void List::append(Value value) {
  charge(sizeof(Value));
  items_.push_back(std::move(value));
}

Tuple::Tuple(Heap& heap, std::vector<Value> items) : Object(heap) {
  charge(items.size() * sizeof(Value));
  items_ = std::move(items);
}

void Tuple::release(std::vector<Value>& out) {
  std::move(items_.begin(), items_.end(), std::back_inserter(out));
  items_.clear();
}

Value Tuple::attribute(Runtime&, const Value&, std::string_view name) {
  if (group_ && name == "grouper") return items_[0];
  if (group_ && name == "list") return items_[1];
  return Value();
}

void Dict::release(std::vector<Value>& out) {
  for (auto& [key, value] : entries_) {
    out.push_back(std::move(key));
    out.push_back(std::move(value));
  }
  entries_.clear();
  index_.clear();
}

std::size_t Dict::index_of(const Value& key) const {
  const std::size_t hash = hash_of(key);
  Budget& budget = heap().budget();
  budget.step();
  if (index_.empty()) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (equal(budget, entries_[i].first, key)) return i;
    }
    return entries_.size();
  }
  const auto [begin, end] = index_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    budget.step();
    if (equal(budget, entries_[it->second].first, key)) return it->second;
  }
  return entries_.size();
}

const Value* Dict::find(const Value& key) const {
  const std::size_t i = index_of(key);
  return i < entries_.size() ? &entries_[i].second : nullptr;
}

const Value* Dict::find(std::string_view key) const {
  if (index_.empty()) {
    for (const auto& [k, v] : entries_) {
      if (k.is_string() && k.text() == key) return &v;
    }
    return nullptr;
  }
  const auto [begin, end] = index_.equal_range(hash_of_text(key));
  for (auto it = begin; it != end; ++it) {
    const auto& [k, v] = entries_[it->second];
    if (k.is_string() && k.text() == key) return &v;
  }
  return nullptr;
}

void Dict::set(const Value& key, Value value) {
  const std::size_t i = index_of(key);
  if (i < entries_.size()) {
    entries_[i].second = std::move(value);
    return;
  }
  charge(sizeof(Entry) + 32);
  entries_.emplace_back(key, std::move(value));
  if (!index_.empty()) {
    index_.emplace(hash_of(key), i);
  } else if (entries_.size() > kIndexFrom) {
    reindex();
  }
}

bool Dict::erase(const Value& key) {
  const std::size_t i = index_of(key);
  if (i == entries_.size()) return false;
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(i));
  heap().budget().step(entries_.size());
  if (!index_.empty()) reindex();
  return true;
}

void Dict::clear() {
  std::vector<Value> held;
  release(held);
  heap().bury(held);
}

void Dict::reindex() {
  index_.clear();
  for (std::size_t i = 0; i < entries_.size(); ++i) index_.emplace(hash_of(entries_[i].first), i);
}

std::string_view DictView::type_name() const {
  switch (part_) {
    case Part::kKeys: return "dict_keys";
    case Part::kValues: return "dict_values";
    default: return "dict_items";
  }
}

Value DictView::at(Runtime& runtime, std::size_t index) const {
  const auto& [key, value] = dict().entries()[index];
  if (part_ == Part::kKeys) return key;
  if (part_ == Part::kValues) return value;
  return runtime.tuple({key, value});
}

std::size_t Range::length() const {
  if (step_ > 0 && start_ < stop_)
    return static_cast<std::size_t>((stop_ - start_ - 1) / step_ + 1);
  if (step_ < 0 && start_ > stop_)
    return static_cast<std::size_t>((start_ - stop_ - 1) / -step_ + 1);
  return 0;
}

Value Range::attribute(Runtime&, const Value&, std::string_view name) {
  if (name == "start") return Value::integer(start_);
  if (name == "stop") return Value::integer(stop_);
  if (name == "step") return Value::integer(step_);
  return Value();
}

void Range::print(Runtime& runtime, StrBuilder& out) const {
  out.append("range(");
  runtime.repr(Value::integer(start_), out);
  out.append(", ");
  runtime.repr(Value::integer(stop_), out);
  if (step_ != 1) {
    out.append(", ");
    runtime.repr(Value::integer(step_), out);
  }
  out.append(")");
}

Value Namespace::attribute(Runtime&, const Value&, std::string_view name) {
  const Value* found = attributes().find(name);
  return found != nullptr ? *found : Value();
}

void Namespace::print(Runtime& runtime, StrBuilder& out) const {
  out.append("<Namespace ");
  runtime.repr(attributes_, out);
  out.append(">");
}

Iterator::Iterator(Heap& heap, int depth) : Object(heap), depth_(depth) {
  if (depth > kMaxIteratorDepth) limit_fault("the template chains too many lazy filters");
}

Value Args::take(std::string_view name) {
  const auto it = std::find_if(named.begin(), named.end(), [&](const auto& argument) {
    return argument.first->text() == name;
  });
  if (it == named.end()) return Value();
  Value value = std::move(it->second);
  named.erase(it);
  return value;
}

}  // namespace dunlin::jinja
