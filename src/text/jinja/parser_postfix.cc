// What follows a value: attributes, items, slices, calls, filters and tests.
#include "text/jinja/parser.h"

namespace dunlin::jinja {

ExprPtr Parser::postfix(ExprPtr node) {
  while (true) {
    if (is(Tok::kDot) || is(Tok::kLeftBracket)) {
      node = subscript(std::move(node));
    } else if (is(Tok::kLeftParen)) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr Parser::filters_and_tests(ExprPtr node) {
  while (true) {
    if (is(Tok::kPipe)) {
      node = filter_chain(std::move(node), false);
    } else if (is_name("is")) {
      node = test(std::move(node));
    } else if (is(Tok::kLeftParen)) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExprPtr Parser::subscript(ExprPtr node) {
  const Token& token = take();
  if (token.type == Tok::kLeftBracket) return bracketed(std::move(node), token.pos);
  const Token& attribute = take();
  if (attribute.type == Tok::kInteger) {
    return make(ExprKind::kItem, token.pos, std::move(node),
                constant(Value::integer(attribute.integer), attribute.pos));
  }
  if (attribute.type != Tok::kName) fail(attribute, "expected name or number");
  ExprPtr expr = make(ExprKind::kAttribute, token.pos, std::move(node));
  expr->text = attribute.text;
  return expr;
}

ExprPtr Parser::bracketed(ExprPtr node, std::uint32_t pos) {
  std::vector<ExprPtr> parts;  // start, stop, step
  std::vector<ExprPtr> keys;
  const auto part = [&]() -> ExprPtr {
    const bool absent = is(Tok::kColon) || is(Tok::kRightBracket) || is(Tok::kComma);
    return absent ? nullptr : expression();
  };
  parts.push_back(part());
  while (parts.size() < 3 && skip(Tok::kColon)) parts.push_back(part());
  if (parts.size() > 1) {
    if (is(Tok::kComma)) fail(current(), "slices of several dimensions are not supported");
    expect(Tok::kRightBracket);
    parts.resize(3);
    parts.insert(parts.begin(), std::move(node));
    return make(ExprKind::kSlice, pos, std::move(parts));
  }
  if (parts[0] == nullptr) fail(current(), "expected subscript expression");
  keys.push_back(std::move(parts[0]));
  while (skip(Tok::kComma)) keys.push_back(expression());
  expect(Tok::kRightBracket);
  ExprPtr key =
      keys.size() == 1 ? std::move(keys[0]) : make(ExprKind::kTuple, pos, std::move(keys));
  return make(ExprKind::kItem, pos, std::move(node), std::move(key));
}

ExprPtr Parser::call(ExprPtr node) {
  const std::uint32_t pos = current().pos;
  ExprPtr expr = make(ExprKind::kCall, pos, std::move(node));
  expr->args = call_args();
  return checked(std::move(expr));
}

CallArgs Parser::call_args() {
  const Token& open = expect(Tok::kLeftParen);
  CallArgs args;
  bool is_first = true;
  const auto must = [&](bool holds) {
    if (!holds) fail(open, "invalid syntax for function call expression");
  };
  while (!is(Tok::kRightParen)) {
    if (!is_first) {
      expect(Tok::kComma);
      if (is(Tok::kRightParen)) break;
    }
    is_first = false;
    if (skip(Tok::kMul)) {
      must(args.star == nullptr && args.star_star == nullptr);
      args.star = expression();
    } else if (skip(Tok::kPow)) {
      must(args.star_star == nullptr);
      args.star_star = expression();
    } else if (is(Tok::kName) && ahead().type == Tok::kAssign) {
      must(args.star_star == nullptr);
      StrPtr name = constant_text(take().text);
      take();
      args.named.emplace_back(std::move(name), expression());
    } else {
      must(args.star == nullptr && args.star_star == nullptr && args.named.empty());
      args.positional.push_back(expression());
    }
  }
  expect(Tok::kRightParen);
  return args;
}

std::string Parser::dotted_name() {
  std::string name = expect(Tok::kName).text;
  while (skip(Tok::kDot)) name += "." + expect(Tok::kName).text;
  return name;
}

void Parser::unknown(const Token& token, std::string message) {
  if (soft_ || unknown_) return;
  unknown_ = Fault{Fault::Kind::kSyntax, std::move(message), token.pos};
}

ExprPtr Parser::filter_chain(ExprPtr node, bool starts_with_name) {
  while (starts_with_name || is(Tok::kPipe)) {
    if (!starts_with_name) take();
    starts_with_name = false;
    const Token& token = current();
    std::vector<ExprPtr> kids;
    kids.push_back(std::move(node));
    ExprPtr expr = make(ExprKind::kFilter, token.pos, std::move(kids));
    expr->text = dotted_name();
    expr->builtin = find_filter(expr->text);
    if (expr->builtin == nullptr) unknown(token, "No filter named '" + expr->text + "'.");
    if (is(Tok::kLeftParen)) expr->args = call_args();
    node = checked(std::move(expr));
  }
  return node;
}

ExprPtr Parser::test(ExprPtr node) {
  const std::uint32_t pos = take().pos;
  const bool negated = skip_name("not");
  const Token& token = current();
  ExprPtr expr = make(ExprKind::kTest, pos, std::move(node));
  expr->text = dotted_name();
  expr->builtin = find_test(expr->text);
  if (expr->builtin == nullptr) unknown(token, "No test named '" + expr->text + "'.");
  const bool has_operand = is(Tok::kName) || is(Tok::kString) || is(Tok::kInteger) ||
                           is(Tok::kFloat) || is(Tok::kLeftBracket) || is(Tok::kLeftBrace);
  if (is(Tok::kLeftParen)) {
    expr->args = call_args();
  } else if (has_operand && !is_name("else") && !is_name("or") && !is_name("and")) {
    if (is_name("is")) fail(current(), "You cannot chain multiple tests with is");
    const Level level(*this);
    expr->args.positional.push_back(postfix(primary()));
  }
  expr = checked(std::move(expr));
  return negated ? make(ExprKind::kNot, pos, std::move(expr)) : std::move(expr);
}

}  // namespace dunlin::jinja
