// map, select, reject and their attr forms, which are lazy; default, attr and tojson.
#include "text/jinja/builtins.h"

namespace dunlin::jinja {
namespace {

// An iterator that does something to each item of another.
class Derived : public Iterator {
 public:
  Derived(Heap& heap, std::shared_ptr<Iterator> source)
      : Iterator(heap, source->depth() + 1), source_(Value::object(source)) {}
  void release(std::vector<Value>& out) override {
    out.push_back(std::move(source_));
    for (Value& value : extra_.pos) out.push_back(std::move(value));
    for (auto& [name, value] : extra_.named) out.push_back(std::move(value));
    extra_.pos.clear();
    extra_.named.clear();
  }

 protected:
  bool pull(Runtime& runtime, Value& out) {
    auto* source = source_.as<Iterator>();
    return source != nullptr && source->next(runtime, out);
  }

  Value source_;
  Args extra_;  // further arguments of the filter or test
};

class Mapped : public Derived {
 public:
  Mapped(Heap& heap, std::shared_ptr<Iterator> source, const Builtin* filter, Args extra)
      : Derived(heap, std::move(source)), filter_(filter) {
    extra_ = std::move(extra);
  }
  ~Mapped() override { bury_all(); }
  bool next(Runtime& runtime, Value& out) override {
    Value item;
    if (!pull(runtime, item)) return false;
    if (filter_ == nullptr) {  // extra: the attribute and what stands in for it
      out = runtime.path(item, extra_.pos[0], extra_.pos[1]);
      return true;
    }
    Args args = extra_;
    args.pos.insert(args.pos.begin(), std::move(item));
    out = invoke(runtime, *filter_, args);
    return true;
  }

 private:
  const Builtin* filter_;
};

class Selected : public Derived {
 public:
  Selected(Heap& heap, std::shared_ptr<Iterator> source, const Builtin* test, Value attribute,
           Args extra, bool keep)
      : Derived(heap, std::move(source)),
        test_(test),
        attribute_(std::move(attribute)),
        keep_(keep) {
    extra_ = std::move(extra);
  }
  ~Selected() override { bury_all(); }
  void release(std::vector<Value>& out) override {
    out.push_back(std::move(attribute_));
    Derived::release(out);
  }
  bool next(Runtime& runtime, Value& out) override {
    for (Value item; pull(runtime, item);) {
      Value subject = attribute_.missing() ? item : runtime.path(item, attribute_);
      if (test_ != nullptr) {
        Args args = extra_;
        args.pos.insert(args.pos.begin(), std::move(subject));
        subject = invoke(runtime, *test_, args);
      }
      if (runtime.truthy(subject) != keep_) continue;
      out = std::move(item);
      return true;
    }
    return false;
  }

 private:
  const Builtin* test_;
  Value attribute_;
  bool keep_;
};

std::shared_ptr<Iterator> source_of(Runtime& runtime, const Value& value) {
  // Jinja's lazy filters give nothing for whatever is false, even None.
  return runtime.iterate(runtime.truthy(value) ? value : runtime.list({}));
}

std::string name_of(const Value& value, const char* what) {
  if (!value.is_string()) fault(std::string("No ") + what + " named by a value that is no text.");
  return value.text();
}

Value map(Runtime& runtime, Args& args) {
  const auto source = source_of(runtime, args.pos[0]);
  Args extra;
  if (args.pos.size() == 1) {
    const Value attribute = args.take("attribute");
    if (attribute.missing()) fault("map requires a filter argument");
    extra.pos = {attribute, args.take("default")};
    if (!args.named.empty()) {
      fault("Unexpected keyword argument '" + args.named[0].first->text() + "'");
    }
    return runtime.make<Mapped>(source, nullptr, std::move(extra));
  }
  const std::string name = name_of(args.pos[1], "filter");
  const Builtin* filter = find_filter(name);
  if (filter == nullptr) fault("No filter named '" + name + "'.");
  extra.pos.assign(args.pos.begin() + 2, args.pos.end());
  extra.named = args.named;
  return runtime.make<Mapped>(source, filter, std::move(extra));
}

template <bool keep, bool by_attribute>
Value select(Runtime& runtime, Args& args) {
  const auto source = source_of(runtime, args.pos[0]);
  Value attribute;
  std::size_t at = 1;
  if (by_attribute) {
    if (args.pos.size() < 2) fault("Missing parameter for attribute name");
    attribute = args.pos[at++];
  }
  const Builtin* test = nullptr;
  Args extra;
  if (args.pos.size() > at) {
    const std::string name = name_of(args.pos[at], "test");
    test = find_test(name);
    if (test == nullptr) fault("No test named '" + name + "'.");
    extra.pos.assign(args.pos.begin() + static_cast<std::ptrdiff_t>(at) + 1, args.pos.end());
    extra.named = args.named;
  }
  return runtime.make<Selected>(source, test, std::move(attribute), std::move(extra), keep);
}

Value default_filter(Runtime& runtime, Args& args) {
  const bool replace = args.pos[0].is_undefined() ||
                       (args.has(2) && runtime.truthy(args.pos[2]) && !runtime.truthy(args.pos[0]));
  if (!replace) return args.pos[0];
  return args.has(1) ? args.pos[1] : runtime.str("");
}

Value attr(Runtime& runtime, Args& args) {
  const std::string name(runtime.to_str(args.pos[1])->text());
  return runtime.own_attribute(args.pos[0], name);
}

constexpr Builtin kFilters[] = {
    {"attr", "obj name", 2, attr},
    {"d", "value default_value boolean", 1, default_filter},
    {"default", "value default_value boolean", 1, default_filter},
    {"map", "*", 1, map},
    {"reject", "*", 1, select<false, false>},
    {"rejectattr", "*", 1, select<false, true>},
    {"select", "*", 1, select<true, false>},
    {"selectattr", "*", 1, select<true, true>},
    {"tojson", "x ensure_ascii indent separators sort_keys", 1, to_json},
};

}  // namespace

std::span<const Builtin> select_filters() { return kFilters; }

}  // namespace dunlin::jinja
