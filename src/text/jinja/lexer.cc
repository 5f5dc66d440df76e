#include "text/jinja/lexer.h"

#include <algorithm>
#include <optional>

#include "text/jinja/numbers.h"
#include "text/jinja/string_literal.h"
#include "text/jinja/unicode.h"

namespace dunlin::jinja {
namespace {

struct Operator {
  std::string_view text;
  Tok type;
};
// Longest first.
constexpr Operator kOperators[] = {
    {"//", Tok::kFloorDiv},   {"**", Tok::kPow},         {"==", Tok::kEq},
    {"!=", Tok::kNe},         {">=", Tok::kGtEq},        {"<=", Tok::kLtEq},
    {"+", Tok::kAdd},         {"-", Tok::kSub},          {"/", Tok::kDiv},
    {"*", Tok::kMul},         {"%", Tok::kMod},          {"~", Tok::kTilde},
    {"[", Tok::kLeftBracket}, {"]", Tok::kRightBracket}, {"(", Tok::kLeftParen},
    {")", Tok::kRightParen},  {"{", Tok::kLeftBrace},    {"}", Tok::kRightBrace},
    {">", Tok::kGt},          {"<", Tok::kLt},           {"=", Tok::kAssign},
    {".", Tok::kDot},         {":", Tok::kColon},        {"|", Tok::kPipe},
    {",", Tok::kComma},       {";", Tok::kSemicolon},
};

bool is_digit_char(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) root();
    add(Tok::kEof, source_.size());
    return std::move(tokens_);
  }

 private:
  Token& add(Tok type, std::size_t pos) {
    return tokens_.emplace_back(Token{type, static_cast<std::uint32_t>(pos), {}});
  }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  bool at(std::string_view text) const { return source_.substr(at_).starts_with(text); }
  std::size_t after_space(std::size_t from) const {
    while (from < source_.size()) {
      const CodePoint c = decode_at(source_, from);
      if (!is_space(c.value)) break;
      from += c.size;
    }
    return from;
  }
  [[noreturn]] void fail(std::size_t pos, std::string message) const {
    syntax_fault(static_cast<std::uint32_t>(pos), std::move(message));
  }

  // Text up to the next tag, then that tag.
  void root() {
    std::size_t tag = at_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
        data(at_, source_.size());
        at_ = source_.size();
        return;
      }
      const char kind = source_[tag + 1];
      if (kind == '{' || kind == '%' || kind == '#') break;
    }
    const char kind = source_[tag + 1];
    const std::size_t begin = at_;
    at_ = tag + 2;
    const char sign = peek() == '-' || peek() == '+' ? source_[at_++] : '\0';
    data(begin, end_of_text(begin, tag, sign, kind != '{'));
    if (kind == '#') {
      comment(tag);
    } else if (kind == '{') {
      add(Tok::kVariableBegin, tag);
      expression(tag, '}');
    } else if (const auto body = raw_body()) {
      at_ = *body;
      raw(tag);
    } else {
      add(Tok::kBlockBegin, tag);
      expression(tag, '%');
    }
  }

  void data(std::size_t begin, std::size_t end) {
    if (end > begin) add(Tok::kData, begin).text = std::string(source_.substr(begin, end - begin));
  }

  // Where the text before a tag ends once whitespace control has had its say.
  std::size_t end_of_text(std::size_t begin, std::size_t tag, char sign, bool is_block) const {
    const std::string_view text = source_.substr(begin, tag - begin);
    if (sign == '-') {
      std::size_t end = text.size();
      while (end > 0) {
        std::size_t last = end - 1;
        while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
        if (!is_space(decode_at(text, last).value)) break;
        end = last;
      }
      return begin + end;
    }
    if (sign == '+' || !is_block) return tag;
    const std::size_t newline = text.rfind('\n');
    const std::size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    if (line == 0 && !line_starting_) return tag;
    return after_space(begin + line) >= tag ? begin + line : tag;
  }

  // Past the end of a tag: "-" takes the whitespace after it, a block's plain end one newline.
  void leave(std::size_t end_size, char sign, bool trim_newline) {
    at_ += end_size;
    if (sign == '-') {
      at_ = after_space(at_);
    } else if (sign != '+' && trim_newline && peek() == '\n') {
      ++at_;
    }
    line_starting_ = source_[at_ - 1] == '\n';
  }

  void comment(std::size_t tag) {
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string_view::npos) fail(tag, "Missing end of comment tag");
    const char before = end > at_ ? source_[end - 1] : '\0';
    at_ = end;
    leave(2, before == '-' || before == '+' ? before : '\0', true);
  }

  // Behind "{%" and its sign: where the body of a raw block starts, if this is one.
  std::optional<std::size_t> raw_body() const {
    std::size_t at = after_space(at_);
    if (!source_.substr(at).starts_with("raw")) return std::nullopt;
    at = after_space(at + 3);
    if (source_.substr(at).starts_with("-%}")) return after_space(at + 3);
    if (source_.substr(at).starts_with("%}")) return at + 2;
    return std::nullopt;
  }

  void raw(std::size_t tag) {
    line_starting_ = at_ > 0 && source_[at_ - 1] == '\n';
    for (std::size_t open = at_; (open = source_.find("{%", open)) != std::string_view::npos;
         open += 2) {
      std::size_t at = open + 2;
      const char sign =
          at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at++] : '\0';
      at = after_space(at);
      if (!source_.substr(at).starts_with("endraw")) continue;
      at = after_space(at + 6);
      const char end_sign =
          at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at++] : '\0';
      if (!source_.substr(at).starts_with("%}")) continue;
      data(at_, end_of_text(at_, open, sign, true));
      at_ = at;
      leave(2, end_sign, true);
      return;
    }
    fail(tag, "Missing end of raw directive");
  }

  // Tokens up to the end of the tag that began at `tag`; `end` is '}' or '%'.
  void expression(std::size_t tag, char end) {
    std::string open;  // the brackets that are open
    while (true) {
      at_ = after_space(at_);
      if (at_ >= source_.size()) {
        fail(tag, end == '}' ? "unexpected end of template, expected 'end of print statement'."
                             : "unexpected end of template, expected 'end of statement block'.");
      }
      if (open.empty() && tag_end(end)) return;
      token(open);
    }
  }

  bool tag_end(char end) {
    const bool signed_end = peek() == '-' || (peek() == '+' && end == '%');
    const std::size_t skip = signed_end ? 1 : 0;
    if (peek(skip) != end || peek(skip + 1) != '}') return false;
    add(end == '}' ? Tok::kVariableEnd : Tok::kBlockEnd, at_);
    leave(2 + skip, signed_end ? peek() : '\0', end == '%');
    return true;
  }

  void token(std::string& open) {
    const std::size_t begin = at_;
    if (is_digit_char(peek())) return number();
    const CodePoint c = decode_at(source_, at_);
    if (is_identifier_part(c.value)) {
      while (at_ < source_.size()) {
        const CodePoint next = decode_at(source_, at_);
        if (!is_identifier_part(next.value)) break;
        at_ += next.size;
      }
      if (!is_identifier_start(c.value)) fail(begin, "Invalid character in identifier");
      add(Tok::kName, begin).text = std::string(source_.substr(begin, at_ - begin));
      return;
    }
    if (c.value == '\'' || c.value == '"') return string(static_cast<char>(c.value));
    const auto* op = std::find_if(std::begin(kOperators), std::end(kOperators),
                                  [&](const Operator& o) { return at(o.text); });
    if (op == std::end(kOperators)) {
      fail(begin, "unexpected char '" + std::string(source_.substr(at_, c.size)) + "'");
    }
    balance(op->text[0], open);
    at_ += op->text.size();
    add(op->type, begin);
  }

  void balance(char c, std::string& open) const {
    if (c == '(') open += ')';
    if (c == '[') open += ']';
    if (c == '{') open += '}';
    if (c != ')' && c != ']' && c != '}') return;
    if (open.empty()) fail(at_, std::string("unexpected '") + c + "'");
    if (open.back() != c) {
      fail(at_, std::string("unexpected '") + c + "', expected '" + open.back() + "'");
    }
    open.pop_back();
  }

  // Digits from `from`, each underscore between two of them; where they end.
  std::size_t digits(std::size_t from) const {
    std::size_t end = from;
    while (end < source_.size() &&
           (is_digit_char(source_[end]) ||
            (source_[end] == '_' && end > from && end + 1 < source_.size() &&
             is_digit_char(source_[end + 1])))) {
      ++end;
    }
    return end;
  }

  void number() {
    const std::size_t begin = at_;
    const bool after_dot = begin > 0 && source_[begin - 1] == '.';
    std::size_t end = digits(begin);
    bool real = false;
    if (!after_dot) {
      if (end < source_.size() && source_[end] == '.' && digits(end + 1) > end + 1) {
        end = digits(end + 1);
        real = true;
      }
      if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
        std::size_t exponent = end + 1;
        if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-'))
          ++exponent;
        if (digits(exponent) > exponent) {
          end = digits(exponent);
          real = true;
        }
      }
    }
    if (real) {
      at_ = end;
      add(Tok::kFloat, begin).real = *parse_float(source_.substr(begin, end - begin));
      return;
    }
    integer(begin, end);
  }

  void integer(std::size_t begin, std::size_t end) {
    const auto based = [&](int base, std::string_view allowed) {
      std::size_t stop = begin + 2;
      while (stop < source_.size() && (allowed.find(source_[stop]) != std::string_view::npos))
        ++stop;
      const auto value =
          stop > begin + 2 ? parse_int(source_.substr(begin, stop - begin), base) : std::nullopt;
      if (!value) fail(begin, "invalid number");
      at_ = stop;
      add(Tok::kInteger, begin).integer = *value;
    };
    if (source_[begin] == '0' && begin + 2 < source_.size()) {
      const char kind = static_cast<char>(source_[begin + 1] | 0x20);
      if (kind == 'x') return based(16, "0123456789abcdefABCDEF_");
      if (kind == 'o') return based(8, "01234567_");
      if (kind == 'b') return based(2, "01_");
    }
    const std::string_view text = source_.substr(begin, end - begin);
    if (text[0] == '0' && text.find_first_not_of("0_") != std::string_view::npos) {
      fail(begin, "a number with a leading zero");
    }
    at_ = end;
    std::optional<Int> value;
    try {
      value = parse_int(text, 10);
    } catch (const Fault&) {
      fail(begin, "the number is too large");
    }
    if (!value) fail(begin, "invalid number");
    add(Tok::kInteger, begin).integer = *value;
  }

  void string(char quote) {
    const std::size_t begin = at_++;
    while (at_ < source_.size() && source_[at_] != quote) at_ += source_[at_] == '\\' ? 2 : 1;
    if (at_ >= source_.size()) fail(begin, "the text is not closed");
    const std::string_view body = source_.substr(begin + 1, at_ - begin - 1);
    ++at_;
    add(Tok::kString, begin).text = decode_literal(body, static_cast<std::uint32_t>(begin + 1));
  }

  std::string_view source_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  bool line_starting_ = true;
};

}  // namespace

std::string normalise_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

std::string_view describe(Tok type) {
  switch (type) {
    case Tok::kEof: return "end of template";
    case Tok::kData: return "template data / text";
    case Tok::kVariableBegin: return "begin of print statement";
    case Tok::kVariableEnd: return "end of print statement";
    case Tok::kBlockBegin: return "begin of statement block";
    case Tok::kBlockEnd: return "end of statement block";
    case Tok::kName: return "name";
    case Tok::kString: return "string";
    case Tok::kInteger: return "integer";
    case Tok::kFloat: return "float";
    default: break;
  }
  const auto* op = std::find_if(std::begin(kOperators), std::end(kOperators),
                                [&](const Operator& o) { return o.type == type; });
  return op->text;
}

std::string describe(const Token& token) {
  return token.type == Tok::kName ? token.text : std::string(describe(token.type));
}

}  // namespace dunlin::jinja
