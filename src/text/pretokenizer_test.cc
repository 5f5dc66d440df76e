#include "text/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/utf8.h"
#include "text/pretokenizer_table.h"
#include "text/regex_dialect.h"

namespace dunlin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PreTokenizer make(std::initializer_list<std::string_view> expressions) {
  auto made = PreTokenizer::make(std::span(expressions.begin(), expressions.size()));
  EXPECT_TRUE(made) << made.error().message();
  return std::move(*made);
}

std::vector<std::string> split(const PreTokenizer& pretokenizer, std::string_view text) {
  std::vector<std::string> pieces;
  pretokenizer.split(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

std::vector<std::string> split(std::string_view expression, std::string_view text) {
  return split(make({expression}), text);
}

std::string refusal(std::string_view expression) {
  auto parsed = parse_huggingface_regex(expression);
  return parsed ? "" : parsed.error().message();
}

TEST(RegexDialectTest, white_space_is_unicodes) {
  EXPECT_THAT(split("\\s", "a\u00A0b\u2003c\u3000d\u200Be\u0085"),
              ElementsAre("a", "\u00A0", "b", "\u2003", "c", "\u3000", "d\u200Be", "\u0085"));
  EXPECT_THAT(split("\\S+", "ab\u2028c"), ElementsAre("ab", "\u2028", "c"));
}

TEST(RegexDialectTest, categories_are_unicodes) {
  EXPECT_THAT(split("\\p{L}+", "aÄ中1\u0E01!"), ElementsAre("aÄ中", "1", "\u0E01", "!"));
  EXPECT_THAT(split("\\p{Lu}", "aÄb"), ElementsAre("a", "Ä", "b"));
  EXPECT_THAT(split("\\P{N}+", "1a²b٣"), ElementsAre("1", "a", "²", "b", "٣"));
  EXPECT_THAT(split("\\p{^N}+", "1a2"), ElementsAre("1", "a", "2"));
  EXPECT_THAT(split("[^\\s\\p{L}]+", "ab!?\U0001F600 c"), ElementsAre("ab", "!?\U0001F600", " c"));
  // U+2EBF0 is a letter since Unicode 15.1 only.
  EXPECT_THAT(split("\\p{L}", "1\U0002EBF0"), ElementsAre("1", "\U0002EBF0"));
}

TEST(RegexDialectTest, ignoring_case_follows_case_folding_of_ascii_letters) {
  EXPECT_THAT(split("(?i:'s|'k)x", "'Sx'\u017Fx'\u212Ax'tx"),
              ElementsAre("'Sx", "'\u017Fx", "'\u212Ax", "'tx"));
  EXPECT_THAT(split("a(?i)b(?-i)c", "aBcABC"), ElementsAre("aBc", "ABC"));
  EXPECT_THAT(split("(?i:[a-c]+)d", "aBCdD"), ElementsAre("aBCd", "D"));
}

TEST(RegexDialectTest, anchors_are_at_lines_and_hex_digits_are_h) {
  EXPECT_THAT(split("x$", "xa\nx\nbx"), ElementsAre("xa\n", "x", "\nb", "x"));
  EXPECT_THAT(split("^x", "xx\nx\n"), ElementsAre("x", "x\n", "x", "\n"));
  EXPECT_THAT(split("\\h+", "xyz0Ffg"), ElementsAre("xyz", "0Ff", "g"));
  EXPECT_THAT(split("\\Ax|x\\z", "xxx"), ElementsAre("x", "x", "x"));
}

TEST(RegexDialectTest, quantifiers_and_escapes_keep_their_meaning) {
  EXPECT_THAT(split("a{,2}b", "aaab"), ElementsAre("a", "aab"));
  EXPECT_THAT(split("a{2}", "aaaaa"), ElementsAre("aa", "aa", "a"));
  EXPECT_THAT(split("a{x", "a{x"), ElementsAre("a{x"));
  EXPECT_THAT(split("a++a|b", "aab"), ElementsAre("aa", "b"));
  EXPECT_THAT(split("a+?", "aa"), ElementsAre("a", "a"));
  EXPECT_THAT(split("[\\]\\-\\[]+", "a]-[b"), ElementsAre("a", "]-[", "b"));
  EXPECT_THAT(split("[]a]+", "a]b"), ElementsAre("a]", "b"));
  EXPECT_THAT(split("[a-]+", "ba-"), ElementsAre("b", "a-"));
  EXPECT_THAT(split("\\u4E00|\\x{1F600}|\\x41", "x一A\U0001F600"),
              ElementsAre("x", "一", "A", "\U0001F600"));
  EXPECT_THAT(split("(?<=a)b(?!c)", "abcabd"), ElementsAre("abca", "b", "d"));
}

TEST(RegexDialectTest, what_cannot_be_translated_is_refused_by_name) {
  EXPECT_THAT(refusal("a\\b"), HasSubstr("'\\b'"));
  EXPECT_THAT(refusal("(a)\\1"), HasSubstr("'\\1'"));
  EXPECT_THAT(refusal("\\X"), HasSubstr("'\\X'"));
  EXPECT_THAT(refusal("\\p{Han}"), HasSubstr("\\p{Han}"));
  EXPECT_THAT(refusal("[[:alpha:]]"), HasSubstr("class inside a class"));
  EXPECT_THAT(refusal("[a&&b]"), HasSubstr("'&&'"));
  EXPECT_THAT(refusal("(?x) a"), HasSubstr("kind of group"));
  EXPECT_THAT(refusal("(?P<n>a)"), HasSubstr("kind of group"));
  EXPECT_THAT(refusal("a{1,3}+"), HasSubstr("repetition in braces"));
  EXPECT_THAT(refusal("(?i:\u00E4)"), HasSubstr("outside ASCII"));
  EXPECT_THAT(refusal("(a"), HasSubstr("not closed"));
  EXPECT_THAT(refusal("a)"), HasSubstr("without '('"));
  EXPECT_THAT(refusal("[a"), HasSubstr("not closed"));
  EXPECT_THAT(refusal("[b-a]"), HasSubstr("range"));
  EXPECT_THAT(refusal("a\\"), HasSubstr("backslash"));
  EXPECT_THAT(refusal("*"), HasSubstr("quantifier"));
  EXPECT_THAT(refusal("\xFF"), HasSubstr("UTF-8"));
}

TEST(PreTokenizerTest, each_expression_cuts_what_those_before_left) {
  const PreTokenizer pretokenizer = make({"\\p{N}", " ?\\p{L}+"});
  EXPECT_THAT(split(pretokenizer, "ab 12cd e"), ElementsAre("ab", " ", "1", "2", "cd", " e"));
  EXPECT_THAT(split(pretokenizer, "é ٣x"), ElementsAre("é", " ", "٣", "x"));
  EXPECT_THAT(split(pretokenizer, ""), ElementsAre());
}

TEST(PreTokenizerTest, a_piece_is_a_text_of_its_own_for_lookaround) {
  EXPECT_THAT(split(make({"1", "a(?!1)|a$"}), "a1ba"), ElementsAre("a", "1", "b", "a"));
}

TEST(PreTokenizerTest, every_known_pretokenizer_compiles_and_joins_to_the_text) {
  const std::string text =
      "Hello, WORLD's it'S  we\u2019re\r\n\r\n  x=12345;\t\u00C4pfel 中文かな한국어 ١٢٣ "
      "\u0928\u092E\u0938\u094D\u0924\u0947 \U0001F468\u200D\U0001F469 \u00A0\u3000end   ";
  for (const PreTokenizerSpec& spec : pretokenizer_specs()) {
    auto made = PreTokenizer::make(spec.expressions);
    ASSERT_TRUE(made) << spec.name << ": " << made.error().message();
    std::string joined;
    for (const std::string& piece : split(*made, text)) {
      EXPECT_FALSE(piece.empty()) << spec.name;
      EXPECT_EQ(find_broken_utf8(piece), piece.size()) << spec.name;
      joined += piece;
    }
    EXPECT_EQ(joined, text) << spec.name;
  }
}

TEST(PreTokenizerTest, a_search_beyond_the_limits_is_cut_and_goes_on) {
  // Exponential without limits; the b at the end keeps PCRE2 from seeing at once that none is near.
  const PreTokenizer pretokenizer = make({"(?:a|aa|a?)+b"});
  const std::string text = std::string(5000, 'a') + "cb";
  std::string joined;
  for (const std::string& piece : split(pretokenizer, text)) {
    EXPECT_LE(piece.size(), ByteRegex::kCutLength);
    joined += piece;
  }
  EXPECT_EQ(joined, text);
}

TEST(PreTokenizerTest, too_many_sets_are_refused) {
  std::string expression;
  for (int i = 0; i < 100; ++i) {
    std::string c;
    append_utf8(c, static_cast<char32_t>(0x4E00 + 2 * i));
    expression += "|[" + c + "]";
  }
  const std::string_view views[] = {expression};
  EXPECT_FALSE(PreTokenizer::make(views));
}

}  // namespace
}  // namespace dunlin
