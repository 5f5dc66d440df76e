// Walks the syntax tree: statements in interp.cc, expressions in eval.cc, loops in loop.cc, macros
// in macro.cc.
#pragma once

#include <string_view>

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"
#include "text/jinja/scope.h"

namespace dunlin::jinja {

// One render. Faults leave the interpreter unusable; the position of the last operation is pos().
class Interp {
 public:
  Interp(const Tree& tree, Runtime& runtime);

  // A variable of the template, before run(); ignored where the template never says its name.
  void define(std::string_view name, Value value);
  // Renders into `out`.
  void run(StrBuilder& out);
  std::uint32_t pos() const { return pos_; }

 private:
  friend class Macro;
  friend class Loop;
  friend class FilteredIterator;

  enum class Flow { kNormal, kBreak, kContinue };

  // Counts the nesting of statements, expressions and calls against Limits::depth.
  class Deeper {
   public:
    explicit Deeper(Interp& interp) : interp_(interp) {
      if (++interp.depth_ > interp.runtime_.budget().limits().depth) {
        --interp.depth_;
        limit_fault("the template recurses too deeply");
      }
      interp.runtime_.budget().step();
    }
    ~Deeper() { --interp_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    Interp& interp_;
  };

  // Another scope, and optionally another output, until this dies.
  class Inside {
   public:
    Inside(Interp& interp, ScopePtr scope, StrBuilder* out = nullptr)
        : interp_(interp), scope_(std::move(interp.scope_)), out_(interp.out_) {
      interp.scope_ = std::move(scope);
      if (out != nullptr) interp.out_ = out;
    }
    ~Inside() {
      interp_.scope_ = std::move(scope_);
      interp_.out_ = out_;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Interp& interp_;
    ScopePtr scope_;
    StrBuilder* out_;
  };

  ScopePtr inner_scope() { return std::make_shared<Scope>(runtime_.heap(), scope_); }

  // Statements.
  Flow exec(const Body& body);
  Flow exec(const Stmt& stmt);
  Flow exec_if(const Stmt& stmt);
  Flow exec_for(const Stmt& stmt);
  Flow exec_set_block(const Stmt& stmt);
  Flow exec_with(const Stmt& stmt);
  Flow exec_filter_block(const Stmt& stmt);
  Flow exec_block(const Stmt& stmt);
  void exec_call(const Stmt& stmt);
  void output(const Stmt& stmt);
  void assign(const Target& target, const Value& value, Scope& scope);
  void unpack(const Target& target, const Value& value, Scope& scope);
  // One run over `items`; `depth` counts the recursive loops around. A break or continue in the
  // else part is for the loop around.
  Flow run_loop(const Stmt& stmt, const Value& items, int depth);

  // Expressions.
  Value eval(const Expr& expr);
  Value eval_name(const Expr& expr);
  Value eval_collection(const Expr& expr);
  Value eval_dict(const Expr& expr);
  Value eval_unary(const Expr& expr);
  Value eval_logic(const Expr& expr);
  Value eval_arithmetic(const Expr& expr);
  Value eval_concat(const Expr& expr);
  Value eval_compare(const Expr& expr);
  Value eval_condition(const Expr& expr);
  Value eval_lookup(const Expr& expr);
  Value eval_slice(const Expr& expr);
  Value eval_call(const Expr& expr, Value caller = Value());
  Value eval_filter(const Expr& expr);
  Value eval_test(const Expr& expr);
  bool compare(CompareOp op, const Value& a, const Value& b);
  void eval_args(const CallArgs& from, Args& to);

  const Tree& tree_;
  Runtime& runtime_;
  ScopePtr root_;
  ScopePtr scope_;
  StrBuilder* out_ = nullptr;
  Value block_text_;  // what a filter block filters
  std::uint32_t pos_ = 0;
  int depth_ = 0;
};

// A macro or the block of a call, with the scope that it was made in.
class Macro : public Object {
 public:
  Macro(Heap& heap, Interp& interp, const MacroDef& def, ScopePtr closure)
      : Object(heap), interp_(interp), def_(def), closure_(std::move(closure)) {}
  std::string_view type_name() const override { return "Macro"; }
  void release(std::vector<Value>&) override {}
  Value attribute(Runtime& runtime, const Value& self, std::string_view name) override;
  bool callable() const override { return true; }
  Value call(Runtime& runtime, Args& args) override;
  void print(Runtime& runtime, StrBuilder& out) const override;

 private:
  void bind_special(Runtime& runtime, Args& args, Scope& scope);
  void set(Runtime& runtime, Scope& scope, std::string_view name, Value value) const;

  Interp& interp_;
  const MacroDef& def_;
  ScopePtr closure_;
};

}  // namespace dunlin::jinja
