#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace dunlin {
namespace {

// A tokenizer whose token `i` is the i-th piece; an empty piece is a control token.
class PieceTokenizer final : public Tokenizer {
 public:
  explicit PieceTokenizer(std::vector<std::string> pieces, bool strips_leading_space = false)
      : pieces_(std::move(pieces)), strips_leading_space_(strips_leading_space) {}

  std::vector<TokenId> encode(std::span<const TextSegment>) const override { return {}; }
  std::string token_bytes(TokenId id, bool render_special) const override {
    const std::string& piece = pieces_[static_cast<std::size_t>(id)];
    return piece.empty() && render_special ? "<control>" : piece;
  }
  int vocab_size() const override { return static_cast<int>(pieces_.size()); }
  bool is_control(TokenId id) const override {
    return pieces_[static_cast<std::size_t>(id)].empty();
  }
  std::span<const TokenId> prefix_ids() const override { return {}; }
  std::span<const TokenId> suffix_ids() const override { return {}; }
  std::span<const TokenId> eos_ids() const override { return {}; }
  TokenId bos_id() const override { return -1; }
  TokenId eos_id() const override { return -1; }
  bool strips_leading_space() const override { return strips_leading_space_; }

 private:
  std::vector<std::string> pieces_;
  bool strips_leading_space_;
};

std::vector<std::string> stream(const Tokenizer& tokenizer, bool render_special = false) {
  Detokenizer detokenizer(tokenizer, true, render_special);
  std::vector<std::string> out;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) out.push_back(detokenizer.push(id));
  out.push_back(detokenizer.finish());
  return out;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += part;
  return out;
}

// `text` cut before byte i + 1 for every set bit i of `cuts`.
std::vector<std::string> cut(std::string_view text, unsigned cuts) {
  std::vector<std::string> pieces(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    pieces.back().push_back(text[i]);
    if (i + 1 < text.size() && (cuts >> i & 1) != 0) pieces.emplace_back();
  }
  return pieces;
}

TEST(DetokenizerTest, bytes_of_an_unfinished_character_wait) {
  EXPECT_EQ(stream(PieceTokenizer({"a\xF0", "\x9F", "\x99", "\x82z"})),
            (std::vector<std::string>{"a", "", "", "\U0001F642z", ""}));
}

TEST(DetokenizerTest, every_way_to_cut_emoji_sequences_gives_the_same_text_in_whole_characters) {
  // A thumb with a skin tone, a family of two, a flag, Devanagari with a vowel sign: up to 18 bytes
  // each, so that all 2^17 cuts are tried.
  for (std::string_view text : {"\U0001F44D\U0001F3FD", "\U0001F468\u200D\U0001F469",
                                "\U0001F1EB\U0001F1F7", "a\u0928\u092E\u0938\u094D\u0924e"}) {
    ASSERT_LE(text.size(), 18u);
    for (unsigned cuts = 0; cuts < 1u << (text.size() - 1); ++cuts) {
      const std::vector<std::string> parts = stream(PieceTokenizer(cut(text, cuts)));
      for (const std::string& part : parts) ASSERT_EQ(find_broken_utf8(part), part.size());
      ASSERT_EQ(parts.back(), "");
      ASSERT_EQ(joined(parts), text);
    }
  }
}

TEST(DetokenizerTest, broken_bytes_come_out_once_certain_and_equal_a_lossy_decoding) {
  EXPECT_EQ(stream(PieceTokenizer({"\xF0\x9F", "a"})),
            (std::vector<std::string>{"", "\uFFFDa", ""}));
  EXPECT_EQ(stream(PieceTokenizer({"\x80", "\xFF"})),
            (std::vector<std::string>{"\uFFFD", "\uFFFD", ""}));
  for (std::string_view text :
       {"\xED\xA0\x80x\xE2\x82", "\xF4\x90\x80\x80\xC3\xA9\xC3", "\xF0\x9F\x98\xF0\x9F\x98\x80"}) {
    for (unsigned cuts = 0; cuts < 1u << (text.size() - 1); ++cuts) {
      ASSERT_EQ(joined(stream(PieceTokenizer(cut(text, cuts)))), repair_utf8(text));
    }
  }
}

TEST(DetokenizerTest, finish_gives_a_replacement_for_what_never_came_and_starts_again) {
  const PieceTokenizer tokenizer({" caf\xC3", " x"}, true);
  Detokenizer detokenizer(tokenizer);
  EXPECT_EQ(detokenizer.push(0), "caf");
  EXPECT_EQ(detokenizer.finish(), "\uFFFD");
  EXPECT_EQ(detokenizer.finish(), "");
  EXPECT_EQ(detokenizer.push(1), "x");
}

TEST(DetokenizerTest, control_tokens_leave_no_trace_unless_asked_for) {
  const PieceTokenizer tokenizer({"\xC3", "", "\xA9"});
  EXPECT_EQ(joined(stream(tokenizer)), "\u00E9");
  EXPECT_EQ(joined(stream(tokenizer, true)), "\uFFFD<control>\uFFFD");
}

TEST(DetokenizerTest, only_the_first_space_of_a_text_is_dropped_and_only_where_one_was_added) {
  EXPECT_EQ(joined(stream(PieceTokenizer({"", " a", " b"}, true))), "a b");
  EXPECT_EQ(joined(stream(PieceTokenizer({"  a", " b"}, true))), " a b");
  EXPECT_EQ(joined(stream(PieceTokenizer({" a", " b"}, false))), " a b");
  const PieceTokenizer tokenizer({" a"}, true);
  Detokenizer inside(tokenizer, /*at_text_start=*/false);
  EXPECT_EQ(inside.push(0), " a");
}

}  // namespace
}  // namespace dunlin
