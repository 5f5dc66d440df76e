// Expressions.
#include "text/jinja/compare.h"
#include "text/jinja/interp.h"

namespace dunlin::jinja {

Value Interp::eval(const Expr& expr) {
  if (expr.kind == ExprKind::kConst) return expr.value;
  if (expr.kind == ExprKind::kName) return eval_name(expr);
  const Deeper deeper(*this);
  switch (expr.kind) {
    case ExprKind::kTuple:
    case ExprKind::kList: return eval_collection(expr);
    case ExprKind::kDict: return eval_dict(expr);
    case ExprKind::kNot:
    case ExprKind::kNegative:
    case ExprKind::kPositive: return eval_unary(expr);
    case ExprKind::kAnd:
    case ExprKind::kOr: return eval_logic(expr);
    case ExprKind::kArithmetic: return eval_arithmetic(expr);
    case ExprKind::kConcat: return eval_concat(expr);
    case ExprKind::kCompare: return eval_compare(expr);
    case ExprKind::kCondition: return eval_condition(expr);
    case ExprKind::kAttribute:
    case ExprKind::kItem: return eval_lookup(expr);
    case ExprKind::kSlice: return eval_slice(expr);
    case ExprKind::kCall: return eval_call(expr);
    case ExprKind::kFilter: return eval_filter(expr);
    default: return eval_test(expr);
  }
}

Value Interp::eval_name(const Expr& expr) {
  runtime_.budget().step();
  const Value* found = scope_->find(expr.name);
  if (found != nullptr) return *found;
  pos_ = expr.pos;
  return Value::undefined("'" + tree_.names[expr.name] + "' is undefined");
}

Value Interp::eval_collection(const Expr& expr) {
  std::vector<Value> items;
  items.reserve(expr.kids.size());
  for (const ExprPtr& kid : expr.kids) items.push_back(eval(*kid));
  return expr.kind == ExprKind::kList ? runtime_.list(std::move(items))
                                      : runtime_.tuple(std::move(items));
}

Value Interp::eval_dict(const Expr& expr) {
  auto dict = runtime_.dict();
  for (std::size_t i = 0; i + 1 < expr.kids.size(); i += 2) {
    const Value key = eval(*expr.kids[i]);
    Value value = eval(*expr.kids[i + 1]);
    pos_ = expr.pos;
    dict->set(key, std::move(value));
  }
  return Value::object(std::move(dict));
}

Value Interp::eval_unary(const Expr& expr) {
  const Value value = eval(*expr.kids[0]);
  pos_ = expr.pos;
  if (expr.kind == ExprKind::kNot) return Value::boolean(!runtime_.truthy(value));
  return expr.kind == ExprKind::kNegative ? negate(value) : plus(value);
}

Value Interp::eval_logic(const Expr& expr) {
  Value left = eval(*expr.kids[0]);
  if (runtime_.truthy(left) == (expr.kind == ExprKind::kOr)) return left;
  return eval(*expr.kids[1]);
}

Value Interp::eval_arithmetic(const Expr& expr) {
  const Value left = eval(*expr.kids[0]);
  const Value right = eval(*expr.kids[1]);
  pos_ = expr.pos;
  return arithmetic(runtime_, expr.arithmetic, left, right);
}

Value Interp::eval_concat(const Expr& expr) {
  StrBuilder out(runtime_.budget());
  std::vector<Value> parts;
  parts.reserve(expr.kids.size());
  for (const ExprPtr& kid : expr.kids) parts.push_back(eval(*kid));
  pos_ = expr.pos;
  for (const Value& part : parts) runtime_.print(part, out);
  return Value::string(out.finish());
}

bool Interp::compare(CompareOp op, const Value& a, const Value& b) {
  Budget& budget = runtime_.budget();
  switch (op) {
    case CompareOp::kEq: return equal(budget, a, b);
    case CompareOp::kNe: return !equal(budget, a, b);
    case CompareOp::kLt: return order(budget, a, b, "<") < 0;
    case CompareOp::kLe: return order(budget, a, b, "<=") <= 0;
    case CompareOp::kGt: return order(budget, a, b, ">") > 0;
    case CompareOp::kGe: return order(budget, a, b, ">=") >= 0;
    case CompareOp::kIn: return runtime_.contains(b, a);
    default: return !runtime_.contains(b, a);
  }
}

Value Interp::eval_compare(const Expr& expr) {
  Value left = eval(*expr.kids[0]);
  for (std::size_t i = 0; i < expr.ops.size(); ++i) {
    Value right = eval(*expr.kids[i + 1]);
    pos_ = expr.pos;
    if (!compare(expr.ops[i], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interp::eval_condition(const Expr& expr) {
  if (runtime_.truthy(eval(*expr.kids[0]))) return eval(*expr.kids[1]);
  if (expr.kids[2] != nullptr) return eval(*expr.kids[2]);
  return Value::undefined(
      "the inline if-expression evaluated to false and no else section was defined.");
}

Value Interp::eval_lookup(const Expr& expr) {
  const Value object = eval(*expr.kids[0]);
  if (expr.kind == ExprKind::kAttribute) {
    pos_ = expr.pos;
    return runtime_.attribute(object, expr.text);
  }
  const Value key = eval(*expr.kids[1]);
  pos_ = expr.pos;
  return runtime_.item(object, key);
}

Value Interp::eval_slice(const Expr& expr) {
  const Value object = eval(*expr.kids[0]);
  Value parts[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (expr.kids[i + 1] != nullptr) parts[i] = eval(*expr.kids[i + 1]);
  }
  pos_ = expr.pos;
  return runtime_.slice(object, parts[0], parts[1], parts[2]);
}

void Interp::eval_args(const CallArgs& from, Args& to) {
  for (const ExprPtr& argument : from.positional) to.pos.push_back(eval(*argument));
  for (const auto& [name, argument] : from.named) to.named.emplace_back(name, eval(*argument));
  if (from.star != nullptr) {
    for (Value& item : runtime_.collect(eval(*from.star))) to.pos.push_back(std::move(item));
  }
  if (from.star_star == nullptr) return;
  const Value mapping = eval(*from.star_star);
  const auto* dict = mapping.as<Dict>();
  if (dict == nullptr) {
    fault("argument after ** must be a mapping, not " + std::string(type_name(mapping)));
  }
  for (const auto& [key, value] : dict->entries()) {
    if (!key.is_string()) fault("keywords must be strings");
    to.named.emplace_back(key.str_ptr(), value);
  }
}

Value Interp::eval_call(const Expr& expr, Value caller) {
  const Expr& callee = *expr.kids[0];
  Args args;
  const auto add_args = [&] {
    eval_args(expr.args, args);
    if (!caller.missing()) {
      static const StrPtr kCaller = constant_text("caller");
      args.named.emplace_back(kCaller, std::move(caller));
    }
    pos_ = expr.pos;
  };
  if (callee.kind == ExprKind::kAttribute) {
    Value self = eval(*callee.kids[0]);
    if (const Builtin* method = find_method(self, callee.text)) {
      args.pos.push_back(std::move(self));
      add_args();
      return invoke(runtime_, *method, args);
    }
    pos_ = callee.pos;
    const Value function = runtime_.attribute(self, callee.text);
    add_args();
    return runtime_.call(function, args);
  }
  const Value function = eval(callee);
  add_args();
  return runtime_.call(function, args);
}

Value Interp::eval_filter(const Expr& expr) {
  Args args;
  args.pos.push_back(expr.kids[0] != nullptr ? eval(*expr.kids[0]) : block_text_);
  eval_args(expr.args, args);
  pos_ = expr.pos;
  if (expr.builtin == nullptr) fault("No filter named '" + expr.text + "' found.");
  return invoke(runtime_, *expr.builtin, args);
}

Value Interp::eval_test(const Expr& expr) {
  Args args;
  args.pos.push_back(eval(*expr.kids[0]));
  eval_args(expr.args, args);
  pos_ = expr.pos;
  if (expr.builtin == nullptr) fault("No test named '" + expr.text + "' found.");
  return invoke(runtime_, *expr.builtin, args);
}

}  // namespace dunlin::jinja
