#include "text/unigram_vocab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/tokenizer_factory.h"

namespace dunlin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Ids: 2 unknown, 3 "▁", 4 "▁a", 5 "a", 6 "b", 7 "▁ab".
Vocab small_vocab() {
  Vocab vocab;
  vocab.kind = TokenizerKind::kUnigram;
  vocab.tokens = {"<pad>", "</s>", "<unk>", "\u2581", "\u2581a", "a", "b", "\u2581ab", "<u>"};
  vocab.types = {TokenType::kControl, TokenType::kControl, TokenType::kUnknown,
                 TokenType::kNormal,  TokenType::kNormal,  TokenType::kNormal,
                 TokenType::kNormal,  TokenType::kNormal,  TokenType::kUserDefined};
  vocab.scores = {0, 0, 0, -2, -3, -4, -4, -9, 0};
  vocab.eos_id = 1;
  vocab.unknown_id = 2;
  vocab.adds_eos = true;
  return vocab;
}

// SentencePiece's map with one entry, from a tab to a space: a trie of 11 units, the replacement.
std::string tab_to_space() {
  std::uint32_t units[12] = {44};
  units[1 + '\t'] = 3U << 10 | 1U << 8 | '\t';  // has a value, at 9 ^ 3
  return std::string(reinterpret_cast<const char*>(units), sizeof(units)) + std::string(" \0", 2);
}

std::unique_ptr<Tokenizer> made(const Vocab& vocab) {
  auto tokenizer = make_tokenizer(vocab);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message();
  return tokenizer ? std::move(*tokenizer) : nullptr;
}

TEST(UnigramVocab, TakesTheCutWithTheBestSumOfScores) {
  const auto tokenizer = made(small_vocab());
  ASSERT_TRUE(tokenizer);
  // "▁a" and "b" are worth -7, "▁ab" -9.
  EXPECT_THAT(tokenizer->encode("ab"), ElementsAre(4, 6));
  EXPECT_THAT(tokenizer->encode("axxb"), ElementsAre(4, 2, 6));
  EXPECT_THAT(tokenizer->encode("a</s>", /*trusted=*/true), ElementsAre(4, 1));
  EXPECT_THAT(tokenizer->encode("a</s>"), ElementsAre(4, 2));
  EXPECT_THAT(tokenizer->encode("<u>"), ElementsAre(8));
  EXPECT_THAT(tokenizer->suffix_ids(), ElementsAre(1));
  EXPECT_TRUE(tokenizer->prefix_ids().empty());
  EXPECT_THAT(tokenizer->eos_ids(), ElementsAre(1));
  EXPECT_EQ(tokenizer->first_token_bytes(4, false), "a");
  EXPECT_EQ(tokenizer->token_bytes(4, false), " a");
}

TEST(UnigramVocab, DoesWithSpacesWhatTheKeysSay) {
  Vocab vocab = small_vocab();
  EXPECT_THAT(made(vocab)->encode(" a  b "), ElementsAre(3, 4, 3, 3, 6, 3));
  vocab.adds_space_prefix = false;
  EXPECT_THAT(made(vocab)->encode(" a"), ElementsAre(4));
  EXPECT_THAT(made(vocab)->encode("a"), ElementsAre(5));
  vocab.removes_extra_spaces = true;
  vocab.adds_space_prefix = true;
  EXPECT_THAT(made(vocab)->encode("  a   b  "), ElementsAre(4, 3, 6));
  EXPECT_THAT(made(vocab)->encode("   "), ElementsAre());
  EXPECT_THAT(made(vocab)->encode("a\n"), ElementsAre(4, 2)) << "only spaces are dropped";
}

TEST(UnigramVocab, TokensMaySpanWords) {
  Vocab vocab = small_vocab();
  EXPECT_THAT(made(vocab)->encode("a b"), ElementsAre(4, 3, 6));
  vocab.tokens[7] = "\u2581a\u2581b";
  vocab.scores[7] = -1;
  EXPECT_THAT(made(vocab)->encode("a b"), ElementsAre(7));
}

TEST(UnigramVocab, MapsCharactersFirst) {
  Vocab vocab = small_vocab();
  vocab.charsmap = tab_to_space();
  vocab.removes_extra_spaces = true;
  EXPECT_THAT(made(vocab)->encode("\t a\t\tb\t"), ElementsAre(4, 3, 6));
  vocab.charsmap.resize(7);
  EXPECT_THAT(make_tokenizer(vocab).error().message(), HasSubstr("charsmap"));
}

TEST(UnigramVocab, BytesSpellWhatNoTokenHas) {
  Vocab vocab = small_vocab();
  vocab.tokens[7] = "<0xC3>";
  vocab.types[7] = TokenType::kByte;
  vocab.tokens[8] = "<0xA4>";
  vocab.types[8] = TokenType::kByte;
  const auto tokenizer = made(vocab);
  EXPECT_THAT(tokenizer->encode("a\u00e4"), ElementsAre(4, 7, 8));
  EXPECT_EQ(tokenizer->token_bytes(7, false), "\xC3");
  EXPECT_THAT(tokenizer->encode("a\u00df"), ElementsAre(4, 2)) << "no token for the second byte";
}

TEST(UnigramVocab, FillersAreNeverTaken) {
  Vocab vocab = small_vocab();
  vocab.tokens[7] = "ab";
  vocab.types[7] = TokenType::kUnused;
  vocab.scores[7] = -1000;
  EXPECT_THAT(made(vocab)->encode("abx"), ElementsAre(4, 6, 2));
}

TEST(UnigramVocab, RefusesOneThatIsBroken) {
  Vocab vocab = small_vocab();
  vocab.unknown_id = -1;
  EXPECT_THAT(make_tokenizer(vocab).error().message(), HasSubstr("unknown_token_id"));
  vocab.unknown_id = 2;
  vocab.tokens[7] = "a";
  EXPECT_THAT(make_tokenizer(vocab).error().message(), HasSubstr("tokens 5 and 7"));
  vocab.scores.pop_back();
  EXPECT_THAT(make_tokenizer(vocab).error().message(), HasSubstr("scores"));
}

}  // namespace
}  // namespace dunlin
