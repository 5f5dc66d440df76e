// Tokenizers over small vocabularies made here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/rng.h"
#include "base/utf8.h"
#include "text/byte_chars.h"
#include "text/tokenizer_factory.h"

namespace dunlin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Owns the texts that a Vocab's views need.
class VocabBuilder {
 public:
  explicit VocabBuilder(TokenizerKind kind) {
    vocab.kind = kind;
    vocab.pretokenizer = "gpt-2";
  }

  TokenId add(std::string text, TokenType type = TokenType::kNormal, float score = 0) {
    texts_.push_back(std::make_unique<std::string>(std::move(text)));
    vocab.tokens.push_back(*texts_.back());
    vocab.types.push_back(type);
    vocab.scores.push_back(score);
    return vocab.size() - 1;
  }
  void merge(const std::string& left, const std::string& right) {
    if (std::find(vocab.tokens.begin(), vocab.tokens.end(), left + right) == vocab.tokens.end()) {
      add(left + right);
    }
    add_merge(left + " " + right);
  }
  void add_merge(std::string line) {
    texts_.push_back(std::make_unique<std::string>(std::move(line)));
    vocab.merges.push_back(*texts_.back());
  }

  std::unique_ptr<Tokenizer> make() {
    auto made = make_tokenizer(vocab);
    EXPECT_TRUE(made) << made.error().message();
    return std::move(*made);
  }
  std::string refusal() {
    auto made = make_tokenizer(vocab);
    return made ? "" : made.error().message();
  }

  Vocab vocab;

 private:
  std::vector<std::unique_ptr<std::string>> texts_;
};

// Ids 0 to 255 are the bytes; 256 "he", 257 "ll", 258 "hell", 259 "Ġhe"; 260 a control and 261 a
// user-defined token.
VocabBuilder byte_level() {
  VocabBuilder builder(TokenizerKind::kBytePairs);
  for (int byte = 0; byte < 256; ++byte) {
    builder.add(char_of_byte(static_cast<unsigned char>(byte)));
  }
  builder.merge("h", "e");
  builder.merge("l", "l");
  builder.merge("he", "ll");
  builder.merge("\u0120", "he");
  builder.add("<|im_start|>", TokenType::kControl);
  builder.add("<tool>", TokenType::kUserDefined);
  return builder;
}
constexpr TokenId kHe = 256, kHell = 258, kSpaceHe = 259, kStart = 260, kTool = 261;

std::string decode(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string out;
  for (TokenId id : ids) out += tokenizer.token_bytes(id);
  return out;
}

TEST(ByteCharsTest, all_bytes_have_a_character_and_back) {
  for (int byte = 0; byte < 256; ++byte) {
    std::string back;
    ASSERT_TRUE(append_bytes_of_chars(char_of_byte(static_cast<unsigned char>(byte)), back));
    ASSERT_EQ(back, std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(char_of_byte(' '), "\u0120");
  EXPECT_EQ(char_of_byte('\n'), "\u010A");
  std::string out = "kept";
  EXPECT_FALSE(append_bytes_of_chars("ab ", out));
  EXPECT_FALSE(append_bytes_of_chars("a\u4E00", out));
  EXPECT_FALSE(append_bytes_of_chars("a\xFF", out));
  EXPECT_EQ(out, "kept");
}

TEST(BpeTest, the_lowest_rank_merges_first) {
  const auto tokenizer = byte_level().make();
  EXPECT_THAT(tokenizer->encode("hello"), ElementsAre(kHell, 'o'));
  EXPECT_THAT(tokenizer->encode("hel"), ElementsAre(kHe, 'l'));
  EXPECT_THAT(tokenizer->encode(" hell"), ElementsAre(' ', kHell));  // before "Ġ he"
  EXPECT_THAT(tokenizer->encode(" he"), ElementsAre(kSpaceHe));
  EXPECT_THAT(tokenizer->encode(""), ElementsAre());
}

TEST(BpeTest, tells_how_many_tokens_a_text_has_at_least) {
  VocabBuilder builder = byte_level();
  const std::string starts = "<|im_start|><|im_start|>";  // the longest token, twice
  EXPECT_EQ(builder.make()->fewest_tokens(starts), 2u);
  EXPECT_EQ(builder.make()->encode(starts, /*trusted=*/true).size(), 2u);
  builder.vocab.types['a'] = TokenType::kUnused;
  const auto without_a = builder.make();
  EXPECT_EQ(without_a->fewest_tokens(std::string(1000, 'a')), 0u) << "they leave nothing";
  EXPECT_THAT(without_a->encode(std::string(1000, 'a')), ElementsAre());
  EXPECT_EQ(without_a->fewest_tokens(std::string(1000, 'a') + std::string(24, 'b')), 2u);
}

TEST(BpeTest, a_token_that_merging_does_not_make_is_only_used_where_the_name_says_so) {
  VocabBuilder builder = byte_level();
  const TokenId abc = builder.add("abc");
  EXPECT_THAT(builder.make()->encode("abc"), ElementsAre('a', 'b', 'c'));
  builder.vocab.pretokenizer = "llama-bpe";
  const auto tokenizer = builder.make();
  EXPECT_THAT(tokenizer->encode("abc"), ElementsAre(abc));
  EXPECT_THAT(tokenizer->encode("abcd"), ElementsAre('a', 'b', 'c', 'd'));
}

TEST(BpeTest, asking_again_gives_the_same_ids) {
  const auto tokenizer = byte_level().make();
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(tokenizer->encode("hell hello he"), ElementsAre(kHell, ' ', kHell, 'o', kSpaceHe));
  }
}

TEST(BpeTest, threads_share_a_tokenizer) {
  const auto tokenizer = byte_level().make();
  const std::string text = "hell hello he help \u00E9 <tool> shell";
  const std::vector<TokenId> expected = byte_level().make()->encode(text, true);
  std::vector<std::vector<TokenId>> found(8);
  std::vector<std::thread> threads;
  for (auto& ids : found) {
    threads.emplace_back([&] { ids = tokenizer->encode(text, true); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& ids : found) EXPECT_EQ(ids, expected);
}

TEST(BpeTest, long_pieces_merge_as_short_ones_do) {
  // Every piece of random letters is merged by the short way (up to 48) and, behind more letters
  // that merge with nothing, by the long way.
  VocabBuilder builder = byte_level();
  for (const char* pair : {"a b", "b a", "ab a", "a a", "aa b", "ba ba", "aba ab"}) {
    const std::string_view line = pair;
    const std::size_t space = line.find(' ');
    builder.merge(std::string(line.substr(0, space)), std::string(line.substr(space + 1)));
  }
  const auto tokenizer = builder.make();
  for (std::uint64_t round = 0; round < 500; ++round) {
    std::string text;
    for (std::uint64_t i = 0; i < 40; ++i)
      text += uniform_at(5, 0, round * 40 + i) < 0.5 ? 'a' : 'b';
    std::vector<TokenId> expected = tokenizer->encode(text);
    for (int i = 0; i < 60; ++i) expected.push_back('z');
    EXPECT_EQ(tokenizer->encode(text + std::string(60, 'z')), expected) << text;
  }
}

TEST(BpeTest, control_tokens_are_matched_in_trusted_text_only) {
  const auto tokenizer = byte_level().make();
  EXPECT_THAT(tokenizer->encode("<|im_start|>he", true), ElementsAre(kStart, kHe));
  EXPECT_EQ(decode(*tokenizer, tokenizer->encode("<|im_start|>he", false)), "<|im_start|>he");
  const auto untrusted = tokenizer->encode("<|im_start|>", false);
  EXPECT_EQ(std::count(untrusted.begin(), untrusted.end(), kStart), 0);

  const TextSegment segments[] = {
      {"<|im_start|>he", true}, {"<|im_start|>", false}, {"<|im_start|>", true}};
  const auto ids = tokenizer->encode(segments);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), kStart), 2);
  EXPECT_EQ(ids.front(), kStart);
  EXPECT_EQ(ids.back(), kStart);
}

TEST(BpeTest, a_control_token_that_input_helps_to_spell_is_not_one) {
  const auto tokenizer = byte_level().make();
  for (const auto& segments :
       std::vector<std::vector<TextSegment>>{{{"<|im_", true}, {"start|>", false}},
                                             {{"<|im_", false}, {"start|>", true}},
                                             {{"<|im", true}, {"_", false}, {"start|>", true}}}) {
    const auto ids = tokenizer->encode(segments);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), kStart), 0);
    EXPECT_EQ(decode(*tokenizer, ids), "<|im_start|>");
  }
  const TextSegment whole[] = {{"<|im_", true}, {"start|>", true}};
  EXPECT_THAT(tokenizer->encode(whole), ElementsAre(kStart));
}

TEST(BpeTest, ordinary_text_is_one_piece_across_borders_of_trust) {
  const auto tokenizer = byte_level().make();
  const TextSegment segments[] = {{"x h", true}, {"e", false}, {"ll", true}};
  EXPECT_EQ(tokenizer->encode(segments), tokenizer->encode("x hell"));
}

TEST(BpeTest, user_defined_tokens_are_matched_everywhere_the_longest_first) {
  VocabBuilder builder = byte_level();
  const TokenId longer = builder.add("<tool>s", TokenType::kUserDefined);
  const auto tokenizer = builder.make();
  EXPECT_THAT(tokenizer->encode("a<tool>b", false), ElementsAre('a', kTool, 'b'));
  EXPECT_THAT(tokenizer->encode("<tool>s<tool>", false), ElementsAre(longer, kTool));
  const TextSegment across[] = {{"<to", true}, {"ol>he", false}};
  EXPECT_THAT(tokenizer->encode(across), ElementsAre(kTool, kHe));
  EXPECT_EQ(decode(*tokenizer, {kTool}), "<tool>");
}

TEST(BpeTest, broken_text_is_tokenised_as_replacement_characters) {
  const auto tokenizer = byte_level().make();
  EXPECT_EQ(tokenizer->encode("he\xFFll"), tokenizer->encode("he\uFFFDll"));
  EXPECT_EQ(tokenizer->encode("\xF0\x9F\x98"), tokenizer->encode("\uFFFD"));
  // A character across a border is whole; trust stays with its text behind repaired parts.
  const TextSegment euro[] = {{"\xE2\x82", true}, {"\xAC", false}};
  EXPECT_EQ(tokenizer->encode(euro), tokenizer->encode("\u20AC"));
  for (std::string_view broken : {"\xFF", "\xFF\xFF\xFF", "\xE2\x82", "a\xC3z"}) {
    const TextSegment segments[] = {
        {broken, false}, {"<|im_start|>", true}, {broken, false}, {"<|im_start|>", false},
        {broken, true},  {"<|im_start|>", true}, {broken, true}};
    const auto ids = tokenizer->encode(segments);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), kStart), 2) << repair_utf8(broken);
    const std::string good = repair_utf8(broken);
    EXPECT_EQ(decode(*tokenizer, ids), good + good + "<|im_start|>" + good + good);
  }
}

TEST(BpeTest, control_tokens_have_no_text_unless_asked_for) {
  const auto tokenizer = byte_level().make();
  EXPECT_TRUE(tokenizer->is_control(kStart));
  EXPECT_FALSE(tokenizer->is_control(kTool));
  EXPECT_FALSE(tokenizer->is_control(-1));
  EXPECT_FALSE(tokenizer->is_control(1000));
  EXPECT_EQ(tokenizer->token_bytes(kStart), "");
  EXPECT_EQ(tokenizer->token_bytes(kStart, true), "<|im_start|>");
  EXPECT_EQ(tokenizer->token_bytes(-1), "");
  EXPECT_EQ(tokenizer->token_bytes(1000), "");
}

TEST(BpeTest, merges_that_name_a_control_token_never_make_it) {
  VocabBuilder builder = byte_level();
  builder.add("<s>x", TokenType::kControl);
  builder.add("<s>");
  builder.add_merge("<s> x");
  builder.add_merge("< s");
  builder.add("<s");
  builder.add_merge("<s >");
  EXPECT_EQ(decode(*builder.make(), builder.make()->encode("<s>x")), "<s>x");
}

TEST(BpeTest, bad_vocabularies_are_refused_with_the_key) {
  VocabBuilder twice = byte_level();
  twice.add("h");
  EXPECT_THAT(twice.refusal(), HasSubstr("tokenizer.ggml.tokens: tokens 104 and 262 are both 'h'"));
  VocabBuilder special_twice = byte_level();
  special_twice.add("<tool>", TokenType::kControl);
  EXPECT_THAT(special_twice.refusal(), HasSubstr("tokens 261 and 262 are both '<tool>'"));
  for (const char* line : {"", "h", "h ", " ", "hh", "zz h", "h zz", "h z", "\xFF h", "h \u4E00"}) {
    VocabBuilder builder = byte_level();
    builder.add_merge(line);
    EXPECT_THAT(builder.refusal(), HasSubstr("tokenizer.ggml.merges: entry 4")) << line;
  }
}

TEST(VocabTest, markers_are_control_tokens_and_turn_ends_end_a_generation) {
  VocabBuilder builder = byte_level();
  const TokenId eot = builder.add("<|eot_id|>", TokenType::kUserDefined);
  const TokenId im_end = builder.add("<|im_end|>");
  builder.vocab.eos_id = 'h';
  builder.vocab.bos_id = 'b';
  builder.vocab.adds_bos = true;
  builder.vocab.adds_eos = true;
  classify_markers(builder.vocab, {'e', -1, 'h'});
  const auto tokenizer = builder.make();
  EXPECT_THAT(tokenizer->eos_ids(), ElementsAre('h', 'e', eot, im_end));
  EXPECT_THAT(tokenizer->prefix_ids(), ElementsAre('b'));
  EXPECT_THAT(tokenizer->suffix_ids(), ElementsAre('h'));
  EXPECT_TRUE(tokenizer->is_control(eot));
  EXPECT_TRUE(tokenizer->is_control(im_end));
  EXPECT_FALSE(tokenizer->is_control('h'));
}

TEST(VocabTest, html_tags_are_no_sentence_markers) {
  VocabBuilder builder = byte_level();
  const TokenId tag = builder.add("</s>", TokenType::kUserDefined);
  classify_markers(builder.vocab, {});
  EXPECT_FALSE(builder.make()->is_control(tag));
}

// 0 <unk>, 1 <s>, 2 </s>, 3 to 258 the bytes, then characters and words.
VocabBuilder sentence_pieces() {
  VocabBuilder builder(TokenizerKind::kSentencePiece);
  builder.add("<unk>", TokenType::kUnknown);
  builder.add("<s>", TokenType::kControl);
  builder.add("</s>", TokenType::kControl);
  const char* digits = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte) {
    builder.add(std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">", TokenType::kByte);
  }
  for (const char* text : {"\u2581", "a", "b", "<", "s", ">"}) {
    builder.add(text, TokenType::kNormal, -100);
  }
  builder.add("ab", TokenType::kNormal, -2);
  builder.add("\u2581a", TokenType::kNormal, -3);
  builder.add("\u2581ab", TokenType::kNormal, -4);
  builder.add("\u2581\u2581", TokenType::kNormal, -1);
  builder.add("<s", TokenType::kNormal, -5);
  builder.vocab.unknown_id = 0;
  builder.vocab.bos_id = 1;
  builder.vocab.eos_id = 2;
  classify_markers(builder.vocab, {});
  return builder;
}
constexpr TokenId kByteZero = 3, kSpace = 259, kA = 260, kB = 261, kGreater = 264, kSpaceA = 266,
                  kSpaceAb = 267, kTwoSpaces = 268, kLessS = 269;

TEST(SpmTest, the_best_score_merges_first_and_spaces_begin_words) {
  const auto tokenizer = sentence_pieces().make();
  EXPECT_THAT(tokenizer->encode("ab"), ElementsAre(kSpaceAb));
  EXPECT_THAT(tokenizer->encode("ab ab"), ElementsAre(kSpaceAb, kSpaceAb));
  EXPECT_THAT(tokenizer->encode("aa"), ElementsAre(kSpaceA, kA));
  EXPECT_THAT(tokenizer->encode("b  b"), ElementsAre(kSpace, kB, kTwoSpaces, kB));
  EXPECT_THAT(tokenizer->encode(""), ElementsAre());
  EXPECT_THAT(tokenizer->prefix_ids(), ElementsAre(1));
  EXPECT_THAT(tokenizer->eos_ids(), ElementsAre(2));
  EXPECT_TRUE(tokenizer->strips_leading_space());
}

TEST(SpmTest, without_space_prefix_text_starts_as_it_is) {
  VocabBuilder builder = sentence_pieces();
  builder.vocab.adds_space_prefix = false;
  const auto tokenizer = builder.make();
  EXPECT_THAT(tokenizer->encode("ab a"), ElementsAre(265, kSpaceA));
  EXPECT_FALSE(tokenizer->strips_leading_space());
}

TEST(SpmTest, characters_without_a_token_are_spelled_in_bytes) {
  const auto tokenizer = sentence_pieces().make();
  EXPECT_THAT(tokenizer->encode("a\u00E9"),
              ElementsAre(kSpaceA, kByteZero + 0xC3, kByteZero + 0xA9));
  EXPECT_EQ(tokenizer->token_bytes(kByteZero + 0xC3), "\xC3");
  EXPECT_EQ(tokenizer->token_bytes(kSpaceAb), " ab");
  EXPECT_EQ(tokenizer->token_bytes(kTwoSpaces), "  ");

  VocabBuilder builder(TokenizerKind::kSentencePiece);
  builder.add("<unk>", TokenType::kUnknown);
  builder.add("a");
  builder.vocab.unknown_id = 0;
  builder.vocab.adds_space_prefix = false;
  EXPECT_THAT(builder.make()->encode("a\u00E9a"), ElementsAre(1, 0, 1));
}

TEST(SpmTest, text_never_merges_into_a_control_or_byte_token) {
  const auto tokenizer = sentence_pieces().make();
  EXPECT_THAT(tokenizer->encode("<s>", false), ElementsAre(kSpace, kLessS, kGreater));
  EXPECT_THAT(tokenizer->encode("<s>", true), ElementsAre(1));
  const auto ids = tokenizer->encode("<0x41>", false);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), kByteZero + 0x41), 0);
}

TEST(SpmTest, a_token_with_an_inner_space_is_found_across_words) {
  VocabBuilder builder = sentence_pieces();
  builder.add("b\u2581", TokenType::kNormal, -0.5f);
  const TokenId across = builder.add("b\u2581b", TokenType::kNormal, -0.25f);
  EXPECT_THAT(builder.make()->encode("b b a"), ElementsAre(kSpace, across, kSpaceA));
}

TEST(SpmTest, bad_vocabularies_are_refused_with_the_key) {
  VocabBuilder no_scores = sentence_pieces();
  no_scores.vocab.scores.clear();
  EXPECT_THAT(no_scores.refusal(), HasSubstr("tokenizer.ggml.scores"));
  VocabBuilder twice = sentence_pieces();
  twice.add("ab");
  EXPECT_THAT(twice.refusal(), HasSubstr("tokenizer.ggml.tokens: tokens 265 and 270"));
  for (const char* name : {"x", "<0x1>", "<0xG0>", "<0x123>", "<0x-1>"}) {
    VocabBuilder byte = sentence_pieces();
    byte.add(name, TokenType::kByte);
    EXPECT_THAT(byte.refusal(), HasSubstr("tokenizer.ggml.tokens: token 270")) << name;
  }
}

}  // namespace
}  // namespace dunlin
