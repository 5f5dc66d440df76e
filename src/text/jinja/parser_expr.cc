// The expression half of the parser: one function a level of precedence.
#include <algorithm>

#include "text/jinja/parser.h"

namespace dunlin::jinja {
ExprPtr Parser::checked(ExprPtr expr) {
  int deepest = 0;
  const auto look = [&](const ExprPtr& kid) {
    if (kid != nullptr) deepest = std::max(deepest, kid->depth);
  };
  std::for_each(expr->kids.begin(), expr->kids.end(), look);
  std::for_each(expr->args.positional.begin(), expr->args.positional.end(), look);
  for (const auto& [name, value] : expr->args.named) look(value);
  look(expr->args.star);
  look(expr->args.star_star);
  expr->depth = deepest + 1;
  if (expr->depth > limits_.expression) syntax_fault(expr->pos, "the expression is too long");
  return expr;
}

ExprPtr Parser::make(ExprKind kind, std::uint32_t pos, std::vector<ExprPtr> kids) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->pos = pos;
  expr->kids = std::move(kids);
  return checked(std::move(expr));
}

ExprPtr Parser::make(ExprKind kind, std::uint32_t pos, ExprPtr first, ExprPtr second) {
  std::vector<ExprPtr> kids;
  kids.push_back(std::move(first));
  if (second != nullptr) kids.push_back(std::move(second));
  return make(kind, pos, std::move(kids));
}

ExprPtr Parser::constant(Value value, std::uint32_t pos) {
  ExprPtr expr = make(ExprKind::kConst, pos);
  expr->value = std::move(value);
  return expr;
}

ExprPtr Parser::condition() {
  const Level level(*this);
  const std::uint32_t pos = current().pos;
  const std::optional<Fault> unknown_before = unknown_;
  ExprPtr expr = disjunction();
  while (skip_name("if")) {
    std::vector<ExprPtr> kids;
    kids.push_back(disjunction());
    kids.push_back(std::move(expr));
    kids.push_back(skip_name("else") ? condition() : nullptr);
    expr = make(ExprKind::kCondition, pos, std::move(kids));
    unknown_ = unknown_before;
  }
  return expr;
}

ExprPtr Parser::disjunction() {
  ExprPtr left = conjunction();
  while (is_name("or")) {
    const std::uint32_t pos = take().pos;
    left = make(ExprKind::kOr, pos, std::move(left), conjunction());
  }
  return left;
}

ExprPtr Parser::conjunction() {
  ExprPtr left = negation();
  while (is_name("and")) {
    const std::uint32_t pos = take().pos;
    left = make(ExprKind::kAnd, pos, std::move(left), negation());
  }
  return left;
}

ExprPtr Parser::negation() {
  if (!is_name("not")) return comparison();
  const Level level(*this);
  const std::uint32_t pos = take().pos;
  return make(ExprKind::kNot, pos, negation());
}

ExprPtr Parser::comparison() {
  const std::uint32_t pos = current().pos;
  std::vector<ExprPtr> kids;
  std::vector<CompareOp> ops;
  kids.push_back(sum());
  while (true) {
    if (is_name("not") && ahead().type == Tok::kName && ahead().text == "in") {
      take();
      take();
      ops.push_back(CompareOp::kNotIn);
    } else if (skip_name("in")) {
      ops.push_back(CompareOp::kIn);
    } else if (skip(Tok::kEq)) {
      ops.push_back(CompareOp::kEq);
    } else if (skip(Tok::kNe)) {
      ops.push_back(CompareOp::kNe);
    } else if (skip(Tok::kLt)) {
      ops.push_back(CompareOp::kLt);
    } else if (skip(Tok::kLtEq)) {
      ops.push_back(CompareOp::kLe);
    } else if (skip(Tok::kGt)) {
      ops.push_back(CompareOp::kGt);
    } else if (skip(Tok::kGtEq)) {
      ops.push_back(CompareOp::kGe);
    } else {
      break;
    }
    kids.push_back(sum());
  }
  if (ops.empty()) return std::move(kids[0]);
  ExprPtr expr = make(ExprKind::kCompare, pos, std::move(kids));
  expr->ops = std::move(ops);
  return expr;
}

ExprPtr Parser::sum() {
  ExprPtr left = concatenation();
  while (is(Tok::kAdd) || is(Tok::kSub)) {
    const Token& op = take();
    left = make(ExprKind::kArithmetic, op.pos, std::move(left), concatenation());
    left->arithmetic = op.type == Tok::kAdd ? Arithmetic::kAdd : Arithmetic::kSub;
  }
  return left;
}

ExprPtr Parser::concatenation() {
  const std::uint32_t pos = current().pos;
  std::vector<ExprPtr> parts;
  parts.push_back(product());
  while (skip(Tok::kTilde)) parts.push_back(product());
  return parts.size() == 1 ? std::move(parts[0]) : make(ExprKind::kConcat, pos, std::move(parts));
}

ExprPtr Parser::product() {
  ExprPtr left = power();
  while (is(Tok::kMul) || is(Tok::kDiv) || is(Tok::kFloorDiv) || is(Tok::kMod)) {
    const Token& op = take();
    left = make(ExprKind::kArithmetic, op.pos, std::move(left), power());
    left->arithmetic = op.type == Tok::kMul        ? Arithmetic::kMul
                       : op.type == Tok::kDiv      ? Arithmetic::kDiv
                       : op.type == Tok::kFloorDiv ? Arithmetic::kFloorDiv
                                                   : Arithmetic::kMod;
  }
  return left;
}

ExprPtr Parser::power() {
  ExprPtr left = unary(true);
  while (is(Tok::kPow)) {
    const std::uint32_t pos = take().pos;
    left = make(ExprKind::kArithmetic, pos, std::move(left), unary(true));
    left->arithmetic = Arithmetic::kPow;
  }
  return left;
}

ExprPtr Parser::unary(bool with_filter) {
  ExprPtr node;
  if (is(Tok::kSub) || is(Tok::kAdd)) {
    const Level level(*this);
    const Token& sign = take();
    node = make(sign.type == Tok::kSub ? ExprKind::kNegative : ExprKind::kPositive, sign.pos,
                unary(false));
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filter ? filters_and_tests(std::move(node)) : std::move(node);
}

ExprPtr Parser::primary() {
  const Token& token = current();
  switch (token.type) {
    case Tok::kName: {
      take();
      const std::string& name = token.text;
      if (name == "true" || name == "True") return constant(Value::boolean(true), token.pos);
      if (name == "false" || name == "False") return constant(Value::boolean(false), token.pos);
      if (name == "none" || name == "None") return constant(Value::none(), token.pos);
      for (MacroUse& use : macros_) {
        use.caller = use.caller || name == "caller";
        use.varargs = use.varargs || name == "varargs";
        use.kwargs = use.kwargs || name == "kwargs";
      }
      ExprPtr expr = make(ExprKind::kName, token.pos);
      expr->name = tree_.names.id(name);
      return expr;
    }
    case Tok::kString: {
      std::string text;
      while (is(Tok::kString)) text += take().text;
      return constant(Value::string(constant_text(std::move(text))), token.pos);
    }
    case Tok::kInteger: take(); return constant(Value::integer(token.integer), token.pos);
    case Tok::kFloat: take(); return constant(Value::real(token.real), token.pos);
    case Tok::kLeftParen: {
      take();
      ExprPtr expr = tuple(true, true);
      expect(Tok::kRightParen);
      return expr;
    }
    case Tok::kLeftBracket: return list_literal();
    case Tok::kLeftBrace: return dict_literal();
    default: fail(token, "unexpected '" + describe(token) + "'");
  }
}

ExprPtr Parser::tuple(bool with_condition, bool in_parens, std::string_view end_name) {
  const Level level(*this);
  const std::uint32_t pos = current().pos;
  std::vector<ExprPtr> parts;
  bool is_tuple = false;
  while (true) {
    if (!parts.empty()) expect(Tok::kComma);
    if (is(Tok::kVariableEnd) || is(Tok::kBlockEnd) || is(Tok::kRightParen) ||
        (!end_name.empty() && is_name(end_name))) {
      break;
    }
    parts.push_back(with_condition ? expression() : disjunction());
    if (!is(Tok::kComma)) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!parts.empty()) return std::move(parts[0]);
    if (!in_parens) fail(current(), "expected an expression, got '" + describe(current()) + "'");
  }
  return make(ExprKind::kTuple, pos, std::move(parts));
}

ExprPtr Parser::list_literal() {
  const std::uint32_t pos = expect(Tok::kLeftBracket).pos;
  std::vector<ExprPtr> items;
  while (!is(Tok::kRightBracket)) {
    if (!items.empty()) expect(Tok::kComma);
    if (is(Tok::kRightBracket)) break;
    items.push_back(expression());
  }
  expect(Tok::kRightBracket);
  return make(ExprKind::kList, pos, std::move(items));
}

ExprPtr Parser::dict_literal() {
  const std::uint32_t pos = expect(Tok::kLeftBrace).pos;
  std::vector<ExprPtr> items;
  while (!is(Tok::kRightBrace)) {
    if (!items.empty()) expect(Tok::kComma);
    if (is(Tok::kRightBrace)) break;
    items.push_back(expression());
    expect(Tok::kColon);
    items.push_back(expression());
  }
  expect(Tok::kRightBrace);
  return make(ExprKind::kDict, pos, std::move(items));
}

}  // namespace dunlin::jinja
