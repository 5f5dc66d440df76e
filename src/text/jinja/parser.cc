#include "text/jinja/parser.h"

#include <algorithm>

namespace dunlin::jinja {
namespace {

// Sets a variable for as long as this lives.
template <typename T>
class With {
 public:
  With(T& variable, T value) : variable_(variable), before_(variable) { variable = value; }
  ~With() { variable_ = before_; }
  With(const With&) = delete;
  With& operator=(const With&) = delete;

 private:
  T& variable_;
  T before_;
};

}  // namespace

Tree parse(std::string_view source) { return Parser(source).run(); }

Parser::Level::Level(Parser& parser) : parser_(parser) {
  if (++parser_.level_ > parser_.limits_.nesting) {
    --parser_.level_;
    parser_.fail(parser_.current(), "the template is nested too deeply");
  }
}

Tree Parser::run() {
  tree_.body = subparse({});
  if (unknown_) throw *unknown_;
  return std::move(tree_);
}

bool Parser::skip(Tok type) {
  if (!is(type)) return false;
  take();
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!is_name(name)) return false;
  take();
  return true;
}

const Token& Parser::expect(Tok type) {
  if (!is(type)) {
    fail(current(),
         "expected '" + std::string(describe(type)) + "', got '" + describe(current()) + "'");
  }
  return take();
}

void Parser::expect_name(std::string_view name) {
  if (!skip_name(name)) {
    fail(current(), "expected '" + std::string(name) + "', got '" + describe(current()) + "'");
  }
}

void Parser::fail(const Token& token, std::string message) const {
  syntax_fault(token.pos, std::move(message));
}

std::unique_ptr<Stmt> Parser::make_stmt(StmtKind kind) const {
  auto stmt = std::make_unique<Stmt>();
  stmt->kind = kind;
  stmt->pos = current().pos;
  return stmt;
}

Body Parser::subparse(Ends ends) {
  const Level level(*this);
  Body body;
  while (!is(Tok::kEof)) {
    if (is(Tok::kData)) {
      body.push_back(make_stmt(StmtKind::kText));
      body.back()->text = constant_text(take().text);
    } else if (is(Tok::kVariableBegin)) {
      take();
      body.push_back(make_stmt(StmtKind::kOutput));
      body.back()->exprs.push_back(tuple(true, false));
      expect(Tok::kVariableEnd);
    } else {
      expect(Tok::kBlockBegin);
      if (std::any_of(ends.begin(), ends.end(), [&](auto end) { return is_name(end); }))
        return body;
      body.push_back(statement());
      expect(Tok::kBlockEnd);
    }
  }
  return body;
}

Body Parser::statements(Ends ends) {
  skip(Tok::kColon);
  expect(Tok::kBlockEnd);
  Body body = subparse(ends);
  if (is(Tok::kEof)) {
    std::string wanted;
    for (const auto end : ends) wanted += (wanted.empty() ? "'" : " or '") + std::string(end) + "'";
    fail(current(), "unexpected end of template: looking for " + wanted);
  }
  return body;
}

Body Parser::statements_to(std::string_view end) {
  Body body = statements({end});
  take();
  return body;
}

std::unique_ptr<Stmt> Parser::statement() {
  if (!is(Tok::kName)) fail(current(), "tag name expected");
  const std::string& tag = current().text;
  if (tag == "if") return parse_if();
  if (tag == "for") return parse_for();
  if (tag == "set") return parse_set();
  if (tag == "with") return parse_with();
  if (tag == "macro") return parse_macro();
  if (tag == "call") return parse_call();
  if (tag == "filter") return parse_filter_block();
  if (tag == "block") return parse_block();
  if (tag == "print") return parse_print();
  if (tag == "generation") return parse_scope("endgeneration");
  if (tag == "autoescape") return parse_autoescape();
  if (tag == "break") return parse_loop_control(StmtKind::kBreak);
  if (tag == "continue") return parse_loop_control(StmtKind::kContinue);
  if (tag == "include" || tag == "import" || tag == "from" || tag == "extends") {
    return parse_refused();
  }
  fail(current(), "unknown tag '" + tag + "'");
}

std::unique_ptr<Stmt> Parser::parse_if() {
  auto stmt = make_stmt(StmtKind::kIf);
  const With soft(soft_, true);
  expect_name("if");
  while (true) {
    stmt->exprs.push_back(tuple(false, false));
    stmt->bodies.push_back(statements({"elif", "else", "endif"}));
    if (skip_name("elif")) continue;
    if (skip_name("else")) {
      stmt->bodies.push_back(statements_to("endif"));
    } else {
      take();
    }
    return stmt;
  }
}

std::unique_ptr<Stmt> Parser::parse_for() {
  auto stmt = make_stmt(StmtKind::kFor);
  expect_name("for");
  const With all_loops(all_loops_, all_loops_ + 1);
  stmt->target = target(false, "in");
  expect_name("in");
  stmt->exprs.push_back(tuple(false, false, "recursive"));
  const With soft(soft_, false);
  stmt->exprs.push_back(skip_name("if") ? expression() : nullptr);
  stmt->flag = skip_name("recursive");
  {
    const With loops(loops_, loops_ + 1);
    stmt->bodies.push_back(statements({"endfor", "else"}));
  }
  if (take().text == "else") {
    stmt->bodies.push_back(statements_to("endfor"));
  } else {
    stmt->bodies.emplace_back();
  }
  return stmt;
}

std::unique_ptr<Stmt> Parser::parse_set() {
  auto stmt = make_stmt(StmtKind::kSet);
  take();
  stmt->target = target(true);
  if (skip(Tok::kAssign)) {
    stmt->exprs.push_back(tuple(true, false));
    return stmt;
  }
  stmt->kind = StmtKind::kSetBlock;
  stmt->exprs.push_back(is(Tok::kPipe) ? filter_chain(nullptr, false) : nullptr);
  const With soft(soft_, false);
  stmt->bodies.push_back(statements_to("endset"));
  return stmt;
}

std::unique_ptr<Stmt> Parser::parse_with() {
  auto stmt = make_stmt(StmtKind::kWith);
  take();
  while (!is(Tok::kBlockEnd)) {
    if (!stmt->targets.empty()) expect(Tok::kComma);
    stmt->targets.push_back(target(false));
    expect(Tok::kAssign);
    stmt->exprs.push_back(expression());
  }
  const With soft(soft_, false);
  stmt->bodies.push_back(statements_to("endwith"));
  return stmt;
}

NameId Parser::param_name() {
  const Token& token = expect(Tok::kName);
  return tree_.names.id(token.text);
}

void Parser::signature(MacroDef& macro) {
  expect(Tok::kLeftParen);
  while (!is(Tok::kRightParen)) {
    if (!macro.params.empty()) expect(Tok::kComma);
    Param param{param_name(), nullptr, nullptr};
    param.text = constant_text(tree_.names[param.name]);
    macro.explicit_caller = macro.explicit_caller || param.text->text() == "caller";
    if (skip(Tok::kAssign)) {
      param.fallback = expression();
    } else if (!macro.params.empty() && macro.params.back().fallback != nullptr) {
      fail(current(), "non-default argument follows default argument");
    }
    macro.params.push_back(std::move(param));
  }
  expect(Tok::kRightParen);
}

void Parser::macro_body(MacroDef& macro, std::string_view end) {
  const With soft(soft_, false);
  const With loops(loops_, 0);
  macros_.emplace_back();
  macro.body = statements_to(end);
  const MacroUse use = macros_.back();
  macros_.pop_back();
  macro.uses_caller = use.caller;
  macro.uses_varargs = use.varargs;
  macro.uses_kwargs = use.kwargs;
  for (const Param& param : macro.params) {
    if (param.text->text() == "varargs") macro.uses_varargs = false;
    if (param.text->text() == "kwargs") macro.uses_kwargs = false;
    if (param.text->text() == "caller" && param.fallback == nullptr && macro.uses_caller) {
      fail(current(), "the special \"caller\" argument must be omitted or be given a default");
    }
  }
}

std::unique_ptr<Stmt> Parser::parse_macro() {
  auto stmt = make_stmt(StmtKind::kMacro);
  take();
  stmt->name = param_name();
  stmt->macro = std::make_unique<MacroDef>();
  stmt->macro->name = tree_.names[stmt->name];
  signature(*stmt->macro);
  macro_body(*stmt->macro, "endmacro");
  return stmt;
}

std::unique_ptr<Stmt> Parser::parse_call() {
  auto stmt = make_stmt(StmtKind::kCall);
  take();
  stmt->macro = std::make_unique<MacroDef>();
  if (is(Tok::kLeftParen)) signature(*stmt->macro);
  const Token& start = current();
  stmt->exprs.push_back(expression());
  if (stmt->exprs[0]->kind != ExprKind::kCall) fail(start, "expected call");
  macro_body(*stmt->macro, "endcall");
  return stmt;
}

std::unique_ptr<Stmt> Parser::parse_filter_block() {
  auto stmt = make_stmt(StmtKind::kFilterBlock);
  take();
  stmt->exprs.push_back(filter_chain(nullptr, true));
  const With soft(soft_, false);
  stmt->bodies.push_back(statements_to("endfilter"));
  return stmt;
}

std::unique_ptr<Stmt> Parser::parse_block() {
  auto stmt = make_stmt(StmtKind::kBlock);
  take();
  const std::string name = expect(Tok::kName).text;
  stmt->text = constant_text(name);
  stmt->flag = skip_name("scoped");
  skip_name("required");
  const With soft(soft_, false);
  const With loops(loops_, 0);
  stmt->bodies.push_back(statements_to("endblock"));
  skip_name(name);
  return stmt;
}

std::unique_ptr<Stmt> Parser::parse_print() {
  auto stmt = make_stmt(StmtKind::kOutput);
  take();
  while (!is(Tok::kBlockEnd)) {
    if (!stmt->exprs.empty()) expect(Tok::kComma);
    stmt->exprs.push_back(expression());
  }
  return stmt;
}

std::unique_ptr<Stmt> Parser::parse_scope(std::string_view end) {
  auto stmt = make_stmt(StmtKind::kScope);
  take();
  const With soft(soft_, false);
  const With loops(loops_, 0);  // as in a call block, which transformers makes of it
  stmt->bodies.push_back(statements_to(end));
  return stmt;
}

std::unique_ptr<Stmt> Parser::parse_autoescape() {
  auto stmt = make_stmt(StmtKind::kScope);
  take();
  const Token& start = current();
  const ExprPtr on = expression();
  if (on->kind != ExprKind::kConst || !on->value.is_bool() || on->value.as_bool()) {
    fail(start, "autoescape other than false is not supported");
  }
  stmt->bodies.push_back(statements_to("endautoescape"));
  return stmt;
}

std::unique_ptr<Stmt> Parser::parse_loop_control(StmtKind kind) {
  auto stmt = make_stmt(kind);
  if (loops_ == 0) fail(current(), "'" + current().text + "' outside of a loop");
  take();
  return stmt;
}

std::unique_ptr<Stmt> Parser::parse_refused() {
  auto stmt = make_stmt(StmtKind::kRefuse);
  stmt->text =
      constant_text("'" + current().text + "' needs other templates, and a chat template has none");
  while (!is(Tok::kBlockEnd) && !is(Tok::kEof)) take();
  return stmt;
}

Target Parser::target(bool with_namespace, std::string_view end_name) {
  if (with_namespace && is(Tok::kName) && ahead().type == Tok::kDot) {
    Target result;
    result.kind = Target::Kind::kAttribute;
    result.pos = current().pos;
    result.name = tree_.names.id(take().text);
    take();
    result.attribute = constant_text(expect(Tok::kName).text);
    return result;
  }
  // Names and brackets only, parsed as an expression and then read as a target.
  const std::uint32_t pos = current().pos;
  std::vector<ExprPtr> parts;
  bool is_tuple = false;
  while (true) {
    if (!parts.empty() && !skip(Tok::kComma)) break;
    is_tuple = !parts.empty() || is_tuple;
    if (is(Tok::kBlockEnd) || is(Tok::kRightParen) || (!end_name.empty() && is_name(end_name)))
      break;
    parts.push_back(primary());
  }
  if (parts.size() == 1 && !is_tuple) return target_of(*parts[0]);
  if (parts.empty())
    fail(current(), "expected a name to assign to, got '" + describe(current()) + "'");
  return target_of(*make(ExprKind::kTuple, pos, std::move(parts)));
}

Target Parser::target_of(const Expr& expr) {
  Target result;
  result.pos = expr.pos;
  if (expr.kind == ExprKind::kName) {
    result.name = expr.name;
    if (all_loops_ > 0 && tree_.names[expr.name] == "loop") {
      syntax_fault(expr.pos, "can't assign to the special loop variable");
    }
    return result;
  }
  if (expr.kind != ExprKind::kTuple) {
    syntax_fault(expr.pos, "can't assign to this");
  }
  result.kind = Target::Kind::kTuple;
  for (const ExprPtr& kid : expr.kids) result.parts.push_back(target_of(*kid));
  return result;
}

}  // namespace dunlin::jinja
