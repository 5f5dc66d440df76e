// Python's values, as far as a template meets them. Scalars and strings are held in place or
// shared; everything with parts is an Object of one render's Heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/str.h"

namespace dunlin::jinja {

using Int = __int128;  // Python's are unbounded; beyond this an operation is refused

class Object;
using ObjPtr = std::shared_ptr<Object>;

// Why a value is undefined: the message of the error that most uses of it raise.
struct Undefined {
  std::string message;
};
using UndefinedPtr = std::shared_ptr<const Undefined>;

enum class Kind : std::uint8_t {
  kMissing,  // no value at all: an argument that was not given; never seen by a template
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kObject,
};

class Value {
 public:
  Value() = default;  // kMissing
  static Value undefined(std::string message) {
    return Value(std::make_shared<const Undefined>(Undefined{std::move(message)}));
  }
  static Value none() { return Value(NoneTag{}); }
  static Value boolean(bool b) { return Value(b); }
  static Value integer(Int i) { return Value(i); }
  static Value real(double d) { return Value(d); }
  static Value string(StrPtr s) { return Value(std::move(s)); }
  static Value object(ObjPtr o) { return Value(std::move(o)); }

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool missing() const { return kind() == Kind::kMissing; }
  bool is_undefined() const { return kind() == Kind::kUndefined; }
  bool is_none() const { return kind() == Kind::kNone; }
  bool is_bool() const { return kind() == Kind::kBool; }
  bool is_int() const { return kind() == Kind::kInt; }
  bool is_float() const { return kind() == Kind::kFloat; }
  bool is_string() const { return kind() == Kind::kString; }
  bool is_object() const { return kind() == Kind::kObject; }
  bool is_integral() const { return is_int() || is_bool(); }  // Python's bool is an int
  bool is_number() const { return is_integral() || is_float(); }

  const Undefined& as_undefined() const { return *std::get<UndefinedPtr>(data_); }
  bool as_bool() const { return std::get<bool>(data_); }
  Int as_int() const { return is_bool() ? Int{std::get<bool>(data_)} : std::get<Int>(data_); }
  double as_float() const {
    return is_float() ? std::get<double>(data_) : static_cast<double>(as_int());
  }
  const StrPtr& str_ptr() const { return std::get<StrPtr>(data_); }
  const Str& str() const { return *str_ptr(); }
  const std::string& text() const { return str_ptr()->text(); }
  Object& object() const { return *std::get<ObjPtr>(data_); }
  const ObjPtr& object_ptr() const { return std::get<ObjPtr>(data_); }

  // The object as a T, or null where this is none.
  template <typename T>
  T* as() const;

 private:
  struct NoneTag {};
  using Data =
      std::variant<std::monostate, UndefinedPtr, NoneTag, bool, Int, double, StrPtr, ObjPtr>;
  template <typename T>
  explicit Value(T value) : data_(std::move(value)) {}

  Data data_;
};

// Owns the bookkeeping of one render's objects: frees deep structures without recursion, and
// cycles (a macro lives in the scope that it closes over) when the render ends.
class Heap {
 public:
  explicit Heap(Budget& budget) : budget_(budget) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  Budget& budget() { return budget_; }
  // Destroys the values, those inside them included, with a bounded stack. Empties `values`.
  void bury(std::vector<Value>& values);

 private:
  friend class Object;
  void drain();

  Budget& budget_;
  Object* first_ = nullptr;  // all living objects
  std::vector<Value> graves_;
  bool burying_ = false;
};

class Runtime;
struct Args;

// Anything with identity. Derived classes bury the values they hold in their destructor.
class Object {
 public:
  explicit Object(Heap& heap);
  virtual ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  virtual std::string_view type_name() const = 0;  // Python's
  // Moves every value that this object holds to `out`.
  virtual void release(std::vector<Value>& out) = 0;
  // An attribute other than a method of list, tuple or dict; kMissing where there is none.
  // `self` is this object as a value.
  virtual Value attribute(Runtime&, const Value& /*self*/, std::string_view) { return Value(); }
  virtual bool callable() const { return false; }
  virtual Value call(Runtime& runtime, Args& args);
  virtual void print(Runtime& runtime, StrBuilder& out) const;  // repr
  Heap& heap() const { return heap_; }

 protected:
  void bury_all();
  void charge(std::size_t bytes);  // given back when the object dies

 private:
  friend class Heap;
  Heap& heap_;
  Object* next_ = nullptr;
  Object* previous_ = nullptr;
  std::size_t charged_ = 0;
};

template <typename T>
T* Value::as() const {
  return is_object() ? dynamic_cast<T*>(&object()) : nullptr;
}

class List : public Object {
 public:
  List(Heap& heap, std::vector<Value> items);
  ~List() override { bury_all(); }
  std::string_view type_name() const override { return "list"; }
  void release(std::vector<Value>& out) override;
  const std::vector<Value>& items() const { return items_; }
  std::vector<Value>& mutable_items() { return items_; }
  void append(Value value);

 private:
  std::vector<Value> items_;
};

class Tuple : public Object {
 public:
  Tuple(Heap& heap, std::vector<Value> items);
  ~Tuple() override { bury_all(); }
  std::string_view type_name() const override { return "tuple"; }
  void release(std::vector<Value>& out) override;
  Value attribute(Runtime&, const Value& self, std::string_view name) override;
  const std::vector<Value>& items() const { return items_; }
  void name_as_group() { group_ = true; }  // |groupby's pairs answer .grouper and .list

 private:
  std::vector<Value> items_;
  bool group_ = false;
};

// Keeps the order of insertion. Keys are Python's hashable values: 1, 1.0 and True are one key.
class Dict : public Object {
 public:
  using Entry = std::pair<Value, Value>;
  explicit Dict(Heap& heap) : Object(heap) {}
  ~Dict() override { bury_all(); }
  std::string_view type_name() const override { return "dict"; }
  void release(std::vector<Value>& out) override;
  const std::vector<Entry>& entries() const { return entries_; }
  const Value* find(const Value& key) const;  // faults on an unhashable key
  const Value* find(std::string_view key) const;
  void set(const Value& key, Value value);
  bool erase(const Value& key);
  void clear();

 private:
  std::size_t index_of(const Value& key) const;  // entries_.size() where absent
  void reindex();

  std::vector<Entry> entries_;
  std::unordered_multimap<std::size_t, std::size_t> index_;  // hash -> entry, beyond a few entries
};

// dict.keys(), .values() and .items(): they see later changes of the dict.
class DictView : public Object {
 public:
  enum class Part { kKeys, kValues, kItems };
  DictView(Heap& heap, Value dict, Part part) : Object(heap), dict_(std::move(dict)), part_(part) {}
  ~DictView() override { bury_all(); }
  std::string_view type_name() const override;
  void release(std::vector<Value>& out) override { out.push_back(std::move(dict_)); }
  const Dict& dict() const { return *dict_.as<Dict>(); }
  Part part() const { return part_; }
  Value at(Runtime& runtime, std::size_t index) const;

 private:
  Value dict_;
  Part part_;
};

class Range : public Object {
 public:
  Range(Heap& heap, Int start, Int stop, Int step)
      : Object(heap), start_(start), stop_(stop), step_(step) {}
  std::string_view type_name() const override { return "range"; }
  void release(std::vector<Value>&) override {}
  Value attribute(Runtime&, const Value& self, std::string_view name) override;
  void print(Runtime& runtime, StrBuilder& out) const override;
  std::size_t length() const;
  Int at(std::size_t index) const { return start_ + static_cast<Int>(index) * step_; }
  Int start() const { return start_; }
  Int step() const { return step_; }

 private:
  Int start_, stop_, step_;
};

class Namespace : public Object {
 public:
  explicit Namespace(Heap& heap, ObjPtr attributes)
      : Object(heap), attributes_(Value::object(std::move(attributes))) {}
  ~Namespace() override { bury_all(); }
  std::string_view type_name() const override { return "Namespace"; }
  void release(std::vector<Value>& out) override { out.push_back(std::move(attributes_)); }
  Value attribute(Runtime&, const Value& self, std::string_view name) override;
  void print(Runtime& runtime, StrBuilder& out) const override;
  Dict& attributes() const { return *attributes_.as<Dict>(); }

 private:
  Value attributes_;
};

// What Python calls an iterator or a generator: gives each item once, only when asked.
class Iterator : public Object {
 public:
  // `depth` is that of the iterator below it plus one; a chain of them is bounded.
  Iterator(Heap& heap, int depth);
  std::string_view type_name() const override { return "generator"; }
  virtual bool next(Runtime& runtime, Value& out) = 0;  // false at the end
  int depth() const { return depth_; }

 private:
  int depth_;
};

// Arguments of a call. After bind() (builtins.h) `pos` has one value a parameter, kMissing where
// none was given.
struct Args {
  std::vector<Value> pos;
  std::vector<std::pair<StrPtr, Value>> named;

  bool has(std::size_t i) const { return i < pos.size() && !pos[i].missing(); }
  // The named argument, taken out; kMissing where there is none.
  Value take(std::string_view name);
};

}  // namespace dunlin::jinja
