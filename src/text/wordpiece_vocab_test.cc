#include "text/wordpiece_vocab.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/tokenizer_factory.h"

namespace dunlin {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Vocab small_vocab() {
  Vocab vocab;
  vocab.kind = TokenizerKind::kWordPiece;
  vocab.tokens = {"[PAD]", "[UNK]", "[CLS]",     "[SEP]",   "\u2581play",
                  "ing",   "ed",    "\u2581ing", "\u2581,", "\u2581eclair"};
  vocab.types.assign(vocab.tokens.size(), TokenType::kNormal);
  std::fill_n(vocab.types.begin(), 4, TokenType::kControl);
  vocab.unknown_id = 1;
  vocab.bos_id = 2;
  vocab.eos_id = 3;
  return vocab;
}

TEST(WordPieceVocab, CutsWordsAsBertDoes) {
  const auto tokenizer = make_tokenizer(small_vocab());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_THAT((*tokenizer)->encode("Playing, played ing"), ElementsAre(4, 5, 8, 4, 6, 7));
  EXPECT_THAT((*tokenizer)->encode("\u00c9clair [CLS] x"), ElementsAre(9, 1, 1, 1, 1));
  EXPECT_THAT((*tokenizer)->prefix_ids(), ElementsAre(2));
  EXPECT_THAT((*tokenizer)->suffix_ids(), ElementsAre(3));
}

TEST(WordPieceVocab, RefusesOneWithoutSpecialTokensOrWithEqualOnes) {
  Vocab vocab = small_vocab();
  vocab.eos_id = -1;
  EXPECT_THAT(make_tokenizer(vocab).error().message(), HasSubstr("[SEP]"));
  vocab.eos_id = 3;
  vocab.tokens.back() = "\u2581play";
  EXPECT_THAT(make_tokenizer(vocab).error().message(), HasSubstr("token 9"));
}

TEST(WordPieceVocab, IsWrittenAsItIsRead) {
  EXPECT_EQ(gguf_wordpiece("##ing"), "ing");
  EXPECT_EQ(gguf_wordpiece("play"), "\u2581play");
  EXPECT_EQ(gguf_wordpiece("[unused1]"), "[unused1]");
}

}  // namespace
}  // namespace dunlin
