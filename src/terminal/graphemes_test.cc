#include "terminal/graphemes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dunlin::terminal {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t pos = 0; pos < text.size();) {
    const std::size_t end = next_grapheme(text, pos);
    out.emplace_back(text.substr(pos, end - pos));
    pos = end;
  }
  return out;
}

constexpr std::string_view kFamily = "👨‍👩‍👧";
constexpr std::string_view kMixed = "aé日e\u0301\n👨‍👩‍👧x🇩🇪🇫🇷";

TEST(Graphemes, keep_together_what_a_reader_sees_as_one) {
  EXPECT_EQ(split(kMixed), (std::vector<std::string>{"a", "é", "日", "e\u0301", "\n",
                                                     std::string(kFamily), "x", "🇩🇪", "🇫🇷"}));
}

TEST(Graphemes, are_the_same_from_behind) {
  for (std::size_t pos = 0; pos < kMixed.size();) {
    const std::size_t end = next_grapheme(kMixed, pos);
    EXPECT_EQ(previous_grapheme(kMixed, end), pos);
    pos = end;
  }
}

TEST(Graphemes, have_the_columns_of_a_terminal) {
  EXPECT_EQ(grapheme_width("a"), 1);
  EXPECT_EQ(grapheme_width("é"), 1);
  EXPECT_EQ(grapheme_width("e\u0301"), 1);
  EXPECT_EQ(grapheme_width("日"), 2);
  EXPECT_EQ(grapheme_width(kFamily), 2);
  EXPECT_EQ(grapheme_width("\u200b"), 0);
}

TEST(Graphemes, clip_at_whole_ones) {
  EXPECT_EQ(clip_to_columns("日本語", 5), "日本");
  EXPECT_EQ(clip_to_columns("e\u0301e\u0301", 1), "e\u0301");
  EXPECT_EQ(clip_to_columns("abc", 3), "abc");
  EXPECT_EQ(clip_to_columns("abc", 0), "");
}

}  // namespace
}  // namespace dunlin::terminal
