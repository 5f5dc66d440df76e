// The syntax tree of a template. Built once by the parser, then read by any number of renders.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/jinja/arithmetic.h"
#include "text/jinja/builtins.h"
#include "text/jinja/value.h"

namespace dunlin::jinja {

using NameId = std::uint32_t;

// A text of the template itself: charged to no render, shared by all.
inline StrPtr constant_text(std::string text) {
  return std::make_shared<const Str>(std::move(text), std::vector<Span>{}, false, nullptr);
}

// The names of a template's variables, numbered.
class Names {
 public:
  NameId id(const std::string& name) {
    const auto [it, is_new] = ids_.emplace(name, static_cast<NameId>(names_.size()));
    if (is_new) names_.push_back(name);
    return it->second;
  }
  // False where the template never says the name.
  bool find(std::string_view name, NameId& id) const {
    const auto it = ids_.find(std::string(name));
    if (it == ids_.end()) return false;
    id = it->second;
    return true;
  }
  const std::string& operator[](NameId id) const { return names_[id]; }

 private:
  std::unordered_map<std::string, NameId> ids_;
  std::vector<std::string> names_;
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct CallArgs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<StrPtr, ExprPtr>> named;
  ExprPtr star;       // *args
  ExprPtr star_star;  // **kwargs
};

enum class ExprKind : std::uint8_t {
  kConst,  // value
  kName,   // name
  kTuple,
  kList,  // kids
  kDict,  // kids: key, value, key, value, ...
  kNot,
  kNegative,
  kPositive,  // kids[0]
  kAnd,
  kOr,
  kArithmetic,  // kids[0], kids[1]
  kConcat,      // kids
  kCompare,     // kids[0] ops[0] kids[1] ops[1] ...
  kCondition,   // kids: condition, then, else (null where there is none)
  kAttribute,   // kids[0].text
  kItem,        // kids[0][kids[1]]
  kSlice,       // kids: object, start, stop, step (null where there is none)
  kCall,        // kids[0](args)
  kFilter,      // kids[0] | text(args); kids[0] null where a block is filtered
  kTest,        // kids[0] is text(args)
};

enum class CompareOp : std::uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

struct Expr {
  ExprKind kind;
  std::uint32_t pos;
  int depth = 1;  // nodes on the longest way down
  Arithmetic arithmetic = Arithmetic::kAdd;
  NameId name = 0;
  const Builtin* builtin = nullptr;  // of a filter or test; null where there is none of the name
  Value value;
  std::string text;
  std::vector<ExprPtr> kids;
  std::vector<CompareOp> ops;
  CallArgs args;
};

// What an assignment writes to: a name, name.attribute of a namespace, or several.
struct Target {
  enum class Kind : std::uint8_t { kName, kAttribute, kTuple };
  Kind kind = Kind::kName;
  std::uint32_t pos = 0;
  NameId name = 0;
  StrPtr attribute;
  std::vector<Target> parts;
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

struct Param {
  NameId name;
  StrPtr text;       // the name again
  ExprPtr fallback;  // null where there is none
};

// A macro, or the block of a call.
struct MacroDef {
  std::string name;  // empty for a call block
  std::vector<Param> params;
  Body body;
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
  bool explicit_caller = false;  // `caller` is a declared parameter
};

enum class StmtKind : std::uint8_t {
  kText,         // text
  kOutput,       // exprs
  kIf,           // branches: (exprs[i], bodies[i]); a last body without condition is the else
  kFor,          // target, exprs: iterable, filter or null; bodies: body, else; flag: recursive
  kSet,          // target, exprs[0]
  kSetBlock,     // target, exprs: filters or null; bodies[0]
  kWith,         // targets, exprs; bodies[0]
  kMacro,        // name, macro
  kCall,         // exprs[0], macro
  kFilterBlock,  // exprs[0], bodies[0]
  kScope,        // bodies[0] in a scope of its own: generation, autoescape
  kBlock,        // text: its name, bodies[0]; flag: scoped
  kBreak,
  kContinue,
  kRefuse,  // text: why (what needs other templates)
};

struct Stmt {
  StmtKind kind;
  std::uint32_t pos;
  bool flag = false;
  NameId name = 0;
  StrPtr text;
  Target target;
  std::vector<Target> targets;
  std::vector<ExprPtr> exprs;
  std::vector<Body> bodies;
  std::unique_ptr<MacroDef> macro;
};

struct Tree {
  Body body;
  Names names;
};

}  // namespace dunlin::jinja
