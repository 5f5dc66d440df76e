// for loops and the `loop` variable.
#include "text/jinja/builtins.h"
#include "text/jinja/compare.h"
#include "text/jinja/interp.h"

namespace dunlin::jinja {

// The items that pass `for ... if TEST`, tested one by one as the loop asks for them.
class FilteredIterator : public Iterator {
 public:
  FilteredIterator(Heap& heap, Interp& interp, const Stmt& stmt, std::shared_ptr<Iterator> source,
                   ScopePtr scope)
      : Iterator(heap, source->depth() + 1),
        interp_(interp),
        stmt_(stmt),
        source_(Value::object(std::move(source))),
        scope_(std::move(scope)) {}
  ~FilteredIterator() override { bury_all(); }
  void release(std::vector<Value>& out) override { out.push_back(std::move(source_)); }

  bool next(Runtime& runtime, Value& out) override {
    const ScopePtr scope = std::make_shared<Scope>(runtime.heap(), scope_);
    const Interp::Inside inside(interp_, scope);
    while (source_.as<Iterator>()->next(runtime, out)) {
      interp_.assign(stmt_.target, out, *scope);
      if (runtime.truthy(interp_.eval(*stmt_.exprs[1]))) return true;
    }
    return false;
  }

 private:
  Interp& interp_;
  const Stmt& stmt_;
  Value source_;
  ScopePtr scope_;
};

// The `loop` variable. Looks ahead only when it is asked to, as Jinja's does.
class Loop : public Object {
 public:
  Loop(Heap& heap, Interp& interp, const Stmt& stmt, Value items, std::shared_ptr<Iterator> source,
       ScopePtr around, int depth)
      : Object(heap),
        interp_(interp),
        stmt_(stmt),
        items_(std::move(items)),
        source_(Value::object(std::move(source))),
        around_(std::move(around)),
        depth_(depth) {}
  ~Loop() override { bury_all(); }
  std::string_view type_name() const override { return "LoopContext"; }
  void release(std::vector<Value>& out) override {
    for (Value* value : {&items_, &source_, &current_, &before_, &after_, &changed_}) {
      out.push_back(std::move(*value));
    }
  }

  bool advance(Runtime& runtime, Value& item) {
    if (!after_.missing()) {
      item = std::exchange(after_, Value());
    } else if (!source_.as<Iterator>()->next(runtime, item)) {
      return false;
    }
    ++index0_;
    before_ = std::exchange(current_, item);
    return true;
  }

  Value attribute(Runtime& runtime, const Value& self, std::string_view name) override;
  bool callable() const override { return true; }
  Value call(Runtime& runtime, Args& args) override;
  void print(Runtime& runtime, StrBuilder& out) const override {
    out.append("<LoopContext ");
    out.append(int_text(index0_ + 1));
    out.append("/");
    out.append(int_text(const_cast<Loop*>(this)->length(runtime)));
    out.append(">");
  }
  Value cycle(const Args& args) const {
    if (args.pos.size() < 2) fault("no items for cycling given");
    const std::size_t count = args.pos.size() - 1;
    return args.pos[1 + static_cast<std::size_t>(index0_) % count];
  }
  Value changed(Runtime& runtime, const Args& args) {
    Value now = runtime.tuple({args.pos.begin() + 1, args.pos.end()});
    if (!changed_.missing() && equal(runtime.budget(), changed_, now)) return Value::boolean(false);
    changed_ = std::move(now);
    return Value::boolean(true);
  }

 private:
  bool peek(Runtime& runtime) {
    return !after_.missing() || source_.as<Iterator>()->next(runtime, after_);
  }
  Int length(Runtime& runtime) {
    if (length_ < 0) {
      const auto known = runtime.length(items_);
      length_ = known ? static_cast<Int>(*known) : count_rest(runtime);
    }
    return length_;
  }
  // Reads a generator to its end to learn its length, and goes on from the items read.
  Int count_rest(Runtime& runtime) {
    std::vector<Value> rest = runtime.collect(source_);
    const Int count = static_cast<Int>(rest.size()) + index0_ + 1 + (after_.missing() ? 0 : 1);
    source_ = Value::object(runtime.iterate(runtime.list(std::move(rest))));
    return count;
  }

  Interp& interp_;
  const Stmt& stmt_;
  Value items_, source_, current_, before_, after_, changed_;
  ScopePtr around_;
  int depth_;
  Int index0_ = -1;
  Int length_ = -1;
};

namespace {

Value loop_cycle(Runtime&, Args& args) { return args.pos[0].as<Loop>()->cycle(args); }
Value loop_changed(Runtime& runtime, Args& args) {
  return args.pos[0].as<Loop>()->changed(runtime, args);
}
constexpr Builtin kCycle{"cycle", "*", 1, loop_cycle};
constexpr Builtin kChanged{"changed", "*", 1, loop_changed};

}  // namespace

Value Loop::attribute(Runtime& runtime, const Value& self, std::string_view name) {
  if (name == "index") return Value::integer(index0_ + 1);
  if (name == "index0") return Value::integer(index0_);
  if (name == "first") return Value::boolean(index0_ == 0);
  if (name == "last") return Value::boolean(!peek(runtime));
  if (name == "length") return Value::integer(length(runtime));
  if (name == "revindex") return Value::integer(length(runtime) - index0_);
  if (name == "revindex0") return Value::integer(length(runtime) - index0_ - 1);
  if (name == "depth") return Value::integer(depth_ + 1);
  if (name == "depth0") return Value::integer(depth_);
  if (name == "previtem") {
    return index0_ > 0 ? before_ : Value::undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return peek(runtime) ? after_ : Value::undefined("there is no next item");
  }
  if (name == "cycle") return runtime.make<Function>(kCycle, self);
  if (name == "changed") return runtime.make<Function>(kChanged, self);
  return Value();
}

// loop(items): the body again over other items, one level deeper.
Value Loop::call(Runtime& runtime, Args& args) {
  if (!stmt_.flag) {
    fault("The loop must have the 'recursive' marker to be called recursively.");
  }
  if (args.pos.size() != 1) fault("loop() takes one argument");
  const Interp::Deeper deeper(interp_);
  StrBuilder out(runtime.budget());
  const Interp::Inside inside(interp_, around_, &out);
  interp_.run_loop(stmt_, args.pos[0], depth_ + 1);
  return Value::string(out.finish());
}

Interp::Flow Interp::exec_for(const Stmt& stmt) {
  const Value items = eval(*stmt.exprs[0]);
  pos_ = stmt.exprs[0]->pos;
  return run_loop(stmt, items, 0);
}

Interp::Flow Interp::run_loop(const Stmt& stmt, const Value& items, int depth) {
  std::shared_ptr<Iterator> source = runtime_.iterate(items);
  const bool filtered = stmt.exprs[1] != nullptr;
  if (filtered) {
    source = std::make_shared<FilteredIterator>(runtime_.heap(), *this, stmt, source, scope_);
  }
  const Value loop = runtime_.make<Loop>(*this, stmt, filtered ? Value::object(source) : items,
                                         source, scope_, depth);
  NameId loop_name = 0;
  const bool says_loop = tree_.names.find("loop", loop_name);
  ScopePtr scope = inner_scope();
  bool completed = false;  // as in Jinja, only a body that runs to its end keeps else away
  for (Value item; loop.as<Loop>()->advance(runtime_, item);) {
    if (scope.use_count() > 1) {
      scope = inner_scope();  // a macro of the last round still holds it
    } else {
      scope->clear();
    }
    assign(stmt.target, item, *scope);
    if (says_loop) scope->set(loop_name, loop);
    const Inside inside(*this, scope);
    const Flow flow = exec(stmt.bodies[0]);
    if (flow == Flow::kBreak) break;
    completed = completed || flow == Flow::kNormal;
  }
  if (!completed && !stmt.bodies[1].empty()) {
    const Inside inside(*this, inner_scope());
    return exec(stmt.bodies[1]);
  }
  return Flow::kNormal;
}

}  // namespace dunlin::jinja
