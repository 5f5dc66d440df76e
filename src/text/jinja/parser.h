// Tokens to syntax tree, by Jinja's grammar.
#pragma once

#include <optional>
#include <string_view>

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace dunlin::jinja {

// How deep templates may nest; deeper ones are refused, so that no later walk can overflow.
struct ParseLimits {
  int nesting = 200;     // brackets and blocks inside each other
  int expression = 800;  // nodes on one way down an expression: a + b + c + ...
};

// Parses a normalised source. Faults (kSyntax).
Tree parse(std::string_view source);

// Shared state of the two halves of the parser: parser.cc (statements) and parser_expr.cc.
class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize(source)) {}
  Tree run();

 private:
  // Ends a nested construct: gives its level back.
  class Level {
   public:
    explicit Level(Parser& parser);
    ~Level() { --parser_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Parser& parser_;
  };
  // What the macro that is being parsed says in its body.
  struct MacroUse {
    bool caller = false, varargs = false, kwargs = false;
  };

  // Token access.
  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  const Token& take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool is(Tok type) const { return current().type == type; }
  bool is_name(std::string_view name) const {
    return current().type == Tok::kName && current().text == name;
  }
  bool skip(Tok type);
  bool skip_name(std::string_view name);
  const Token& expect(Tok type);
  void expect_name(std::string_view name);
  [[noreturn]] void fail(const Token& token, std::string message) const;

  // Statements (parser.cc).
  using Ends = std::initializer_list<std::string_view>;
  Body statements(Ends ends);  // from behind a tag's words to one of `ends`, not taken
  Body statements_to(std::string_view end);  // the same, takes it
  Body subparse(Ends ends);
  std::unique_ptr<Stmt> statement();
  std::unique_ptr<Stmt> parse_if();
  std::unique_ptr<Stmt> parse_for();
  std::unique_ptr<Stmt> parse_set();
  std::unique_ptr<Stmt> parse_with();
  std::unique_ptr<Stmt> parse_macro();
  std::unique_ptr<Stmt> parse_call();
  std::unique_ptr<Stmt> parse_filter_block();
  std::unique_ptr<Stmt> parse_block();
  std::unique_ptr<Stmt> parse_print();
  std::unique_ptr<Stmt> parse_scope(std::string_view end);
  std::unique_ptr<Stmt> parse_autoescape();
  std::unique_ptr<Stmt> parse_loop_control(StmtKind kind);
  std::unique_ptr<Stmt> parse_refused();
  void signature(MacroDef& macro);
  void macro_body(MacroDef& macro, std::string_view end);
  std::unique_ptr<Stmt> make_stmt(StmtKind kind) const;
  Target target(bool with_namespace, std::string_view end_name = {});
  Target target_of(const Expr& expr);
  NameId param_name();

  // Expressions (parser_expr.cc).
  ExprPtr expression() { return condition(); }
  ExprPtr condition();
  ExprPtr disjunction();
  ExprPtr conjunction();
  ExprPtr negation();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concatenation();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool with_filter);
  ExprPtr primary();
  ExprPtr postfix(ExprPtr node);
  ExprPtr filters_and_tests(ExprPtr node);
  ExprPtr tuple(bool with_condition, bool in_parens, std::string_view end_name = {});
  ExprPtr list_literal();
  ExprPtr dict_literal();
  ExprPtr subscript(ExprPtr node);
  ExprPtr bracketed(ExprPtr node, std::uint32_t pos);
  ExprPtr call(ExprPtr node);
  CallArgs call_args();
  ExprPtr filter_chain(ExprPtr node, bool starts_with_name);
  ExprPtr test(ExprPtr node);
  ExprPtr make(ExprKind kind, std::uint32_t pos, std::vector<ExprPtr> kids = {});
  ExprPtr make(ExprKind kind, std::uint32_t pos, ExprPtr first, ExprPtr second = nullptr);
  ExprPtr checked(ExprPtr expr);
  ExprPtr constant(Value value, std::uint32_t pos);
  std::string dotted_name();
  void unknown(const Token& token, std::string message);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  Tree tree_;
  ParseLimits limits_;
  int level_ = 0;
  int loops_ = 0;                 // loops that break and continue can leave
  int all_loops_ = 0;             // the same, macros inside loops included
  bool soft_ = false;             // inside an if: unknown filters fault only when they are reached
  std::optional<Fault> unknown_;  // the first unknown filter or test outside of any condition
  std::vector<MacroUse> macros_;
};

}  // namespace dunlin::jinja
