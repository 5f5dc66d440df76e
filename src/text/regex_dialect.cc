#include "text/regex_dialect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/utf8.h"

namespace dunlin {
namespace {

constexpr int kMaxNesting = 64;
constexpr std::uint32_t kMaxRepeat = 1000;

bool is_ascii_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_ascii_digit(char32_t c) { return c >= '0' && c <= '9'; }

CodePointSet one(char32_t c) { return CodePointSet({{c, c}}); }

// All that case folding makes equal to an ASCII letter: the long s and the Kelvin sign fold to
// s and k.
CodePointSet both_cases(char32_t c) {
  const char32_t lower = c | 0x20;
  std::vector<CodePointSet::Range> ranges = {{lower, lower}, {lower - 0x20, lower - 0x20}};
  if (lower == 's') ranges.push_back({0x17F, 0x17F});
  if (lower == 'k') ranges.push_back({0x212A, 0x212A});
  return CodePointSet(std::move(ranges));
}

class Parser {
 public:
  explicit Parser(std::string_view pattern) : pattern_(pattern) {}

  Result<ParsedRegex> parse() {
    if (find_broken_utf8(pattern_) != pattern_.size()) return refuse("a byte that is not UTF-8");
    while (!at_end()) DUNLIN_TRY(parse_one());
    if (!saved_ignore_case_.empty()) return refuse("a group that is not closed");
    return std::move(out_);
  }

 private:
  bool at_end() const { return pos_ >= pattern_.size(); }
  bool looking_at(std::string_view text) const { return pattern_.substr(pos_).starts_with(text); }
  bool skip(std::string_view text) {
    if (!looking_at(text)) return false;
    pos_ += text.size();
    return true;
  }
  char32_t take() {
    const char32_t c = decode_valid_utf8(pattern_.data() + pos_);
    pos_ += static_cast<std::size_t>(utf8_length(static_cast<unsigned char>(pattern_[pos_])));
    return c;
  }
  tl::unexpected<Status> refuse(std::string_view what) const {
    return invalid(fmt::format("expression '{}', byte {}: {} can't be used", pattern_, pos_, what));
  }

  void emit(std::string_view syntax) {
    if (out_.pieces.empty() || out_.pieces.back().set_idx >= 0) out_.pieces.emplace_back();
    out_.pieces.back().syntax += syntax;
  }
  void emit_set(CodePointSet set) {
    auto found = std::find(out_.sets.begin(), out_.sets.end(), set);
    if (found == out_.sets.end()) found = out_.sets.insert(found, std::move(set));
    out_.pieces.push_back({"", static_cast<int>(found - out_.sets.begin())});
  }
  Outcome emit_literal(char32_t c) {
    if (c >= 0x80) {
      if (ignore_case_) return refuse("a character outside ASCII under (?i)");
      emit_set(one(c));
    } else if (ignore_case_ && is_ascii_letter(c)) {
      emit_set(both_cases(c));
    } else {
      emit(fmt::format("\\x{:02x}", static_cast<unsigned>(c)));
    }
    return {};
  }

  Outcome parse_one() {
    switch (pattern_[pos_]) {
      case '(': return open_group();
      case ')':
        if (saved_ignore_case_.empty()) return refuse("')' without '('");
        ++pos_;
        ignore_case_ = saved_ignore_case_.back();
        saved_ignore_case_.pop_back();
        emit(")");
        return {};
      case '[': return parse_class();
      case '\\': return parse_escape();
      case '|':
        ++pos_;
        emit("|");
        return {};
      case '.':
        ++pos_;
        emit_set(one('\n').complement());
        return {};
      // A line starts behind every newline but one that ends the text.
      case '^':
        ++pos_;
        emit("(?:\\A|(?<=\\n)(?!\\z))");
        return {};
      case '$':
        ++pos_;
        emit("(?=\\n|\\z)");
        return {};
      case '*':
      case '+':
      case '?': return parse_simple_quantifier();
      case '{': return parse_braces();
      default: return emit_literal(take());
    }
  }

  Outcome open_group() {
    if (saved_ignore_case_.size() >= kMaxNesting) return refuse("a group so deep");
    const bool before = ignore_case_;
    std::string_view opening;
    if (skip("(?i)") || skip("(?-i)")) {
      ignore_case_ = pattern_[pos_ - 3] != '-';
      return {};
    }
    if (skip("(?i:") || skip("(?-i:")) {
      ignore_case_ = pattern_[pos_ - 3] != '-';
      opening = "(?:";
    } else {
      for (std::string_view kept : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
        if (opening.empty() && skip(kept)) opening = kept;
      }
      if (opening.empty()) {
        if (looking_at("(?") || looking_at("(*")) return refuse("this kind of group");
        ++pos_;
        opening = "(?:";  // nothing refers back to it
      }
    }
    emit(opening);
    saved_ignore_case_.push_back(before);
    return {};
  }

  Outcome parse_simple_quantifier() {
    if (out_.pieces.empty()) return refuse("a quantifier without an item");
    emit(pattern_.substr(pos_++, 1));
    if (looking_at("?") || looking_at("+")) emit(pattern_.substr(pos_++, 1));
    return {};
  }

  std::optional<std::uint32_t> take_number() {
    std::uint32_t value = 0;
    bool any = false;
    for (; !at_end() && is_ascii_digit(static_cast<unsigned char>(pattern_[pos_])); ++pos_) {
      value = std::min(value * 10 + static_cast<std::uint32_t>(pattern_[pos_] - '0'), 1000000u);
      any = true;
    }
    return any ? std::optional(value) : std::nullopt;
  }

  // {n} {n,} {n,m} {,m}; anything else is a literal brace.
  Outcome parse_braces() {
    const std::size_t start = pos_++;
    const auto min = take_number();
    const bool comma = skip(",");
    const auto max = comma ? take_number() : min;
    if (!skip("}") || (!min && !max)) {
      pos_ = start + 1;
      return emit_literal('{');
    }
    if (out_.pieces.empty()) return refuse("a quantifier without an item");
    if (std::max(min.value_or(0), max.value_or(0)) > kMaxRepeat) {
      return refuse("a repetition above 1000");
    }
    if (looking_at("+")) return refuse("'+' behind a repetition in braces");
    emit(max ? fmt::format("{{{},{}}}", min.value_or(0), *max) : fmt::format("{{{},}}", *min));
    if (skip("?")) emit("?");
    return {};
  }

  // pos_ is at a backslash outside a class.
  Outcome parse_escape() {
    for (std::string_view anchor : {"\\A", "\\z"}) {
      if (skip(anchor)) return emit(anchor), Outcome();
    }
    if (skip("\\Z")) return emit("(?=\\n?\\z)"), Outcome();
    std::optional<char32_t> literal;
    DUNLIN_ASSIGN(set, parse_escaped_set(literal));
    if (literal) return emit_literal(*literal);
    emit_set(std::move(set));
    return {};
  }

  // pos_ is at a backslash. Gives the set, or sets `literal` where it stands for one character.
  Result<CodePointSet> parse_escaped_set(std::optional<char32_t>& literal) {
    const std::size_t start = pos_++;
    if (at_end()) return refuse("a backslash at the end");
    const char32_t c = take();
    switch (c) {
      case 's': return white_space();
      case 'S': return white_space().complement();
      case 'd': return *code_points_of_category("Nd");
      case 'D': return code_points_of_category("Nd")->complement();
      case 'w': return word_characters();
      case 'W': return word_characters().complement();
      case 'h':
      case 'H': {
        const CodePointSet digits({{'0', '9'}, {'a', 'f'}, {'A', 'F'}});
        return c == 'h' ? digits : digits.complement();
      }
      case 'p':
      case 'P': return parse_property(c == 'P');
      case 'n': literal = '\n'; break;
      case 'r': literal = '\r'; break;
      case 't': literal = '\t'; break;
      case 'f': literal = '\f'; break;
      case 'v': literal = '\v'; break;
      case 'a': literal = '\a'; break;
      case 'e': literal = 0x1B; break;
      case 'x': return parse_hex(literal);
      case 'u': return parse_hex_digits(4, literal);
      default:
        if (c < 0x80 && (is_ascii_letter(c) || is_ascii_digit(c))) {
          pos_ = start;
          return refuse(fmt::format("'\\{}'", static_cast<char>(c)));
        }
        literal = c;
    }
    return CodePointSet();
  }

  Result<CodePointSet> parse_property(bool negated) {
    if (!skip("{")) return refuse("\\p without braces");
    if (skip("^")) negated = !negated;
    const std::size_t end = pattern_.find('}', pos_);
    if (end == std::string_view::npos) return refuse("\\p{ that is not closed");
    const std::string_view name = pattern_.substr(pos_, end - pos_);
    const auto set = code_points_of_category(name);
    if (!set) return refuse(fmt::format("\\p{{{}}}", name));
    if (ignore_case_ && name.size() > 1 && name[0] == 'L') return refuse("a case under (?i)");
    pos_ = end + 1;
    return negated ? set->complement() : *set;
  }

  Result<CodePointSet> parse_hex(std::optional<char32_t>& literal) {
    if (!skip("{")) return parse_hex_digits(2, literal);
    const std::size_t end = pattern_.find('}', pos_);
    if (end == std::string_view::npos || end == pos_ || end - pos_ > 6) {
      return refuse("\\x{..} of this length");
    }
    DUNLIN_ASSIGN(set, parse_hex_digits(end - pos_, literal));
    ++pos_;
    return set;
  }

  Result<CodePointSet> parse_hex_digits(std::size_t count, std::optional<char32_t>& literal) {
    char32_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const char32_t c = at_end() ? 0 : take();
      if (is_ascii_digit(c)) {
        value = value * 16 + (c - '0');
      } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
        value = value * 16 + ((c | 0x20) - 'a' + 10);
      } else {
        return refuse("a digit that is not hexadecimal");
      }
    }
    if (value > kMaxCodePoint) return refuse("a code point above 10FFFF");
    literal = value;
    return CodePointSet();
  }

  Outcome parse_class() {
    ++pos_;
    const bool negated = skip("^");
    CodePointSet set;
    for (bool first = true;; first = false) {
      if (at_end()) return refuse("a class that is not closed");
      if (!first && skip("]")) break;
      DUNLIN_ASSIGN(item, parse_class_item());
      set = set.united(item);
    }
    emit_set(negated ? set.complement() : std::move(set));
    return {};
  }

  // A character, a range or an escaped set.
  Result<CodePointSet> parse_class_item() {
    if (looking_at("[")) return refuse("a class inside a class");
    if (looking_at("&&")) return refuse("'&&'");
    std::optional<char32_t> first;
    DUNLIN_ASSIGN(set, parse_class_atom(first));
    if (!first) return set;
    std::optional<char32_t> last = first;
    if (looking_at("-") && !looking_at("-]")) {
      ++pos_;
      if (at_end()) return refuse("a class that is not closed");
      if (looking_at("[")) return refuse("a class inside a class");
      DUNLIN_TRY(parse_class_atom(last));
      if (!last || *last < *first) return refuse("this range");
    }
    if (!ignore_case_) return CodePointSet({{*first, *last}});
    if (*last >= 0x80) return refuse("a character outside ASCII under (?i)");
    CodePointSet folded({{*first, *last}});
    for (char32_t c = *first; c <= *last; ++c) {
      if (is_ascii_letter(c)) folded = folded.united(both_cases(c));
    }
    return folded;
  }

  Result<CodePointSet> parse_class_atom(std::optional<char32_t>& literal) {
    literal.reset();
    if (looking_at("\\")) return parse_escaped_set(literal);
    literal = take();
    return CodePointSet();
  }

  std::string_view pattern_;
  std::size_t pos_ = 0;
  bool ignore_case_ = false;
  std::vector<bool> saved_ignore_case_;  // one entry for each open group
  ParsedRegex out_;
};

}  // namespace

Result<ParsedRegex> parse_huggingface_regex(std::string_view pattern) {
  return Parser(pattern).parse();
}

}  // namespace dunlin
