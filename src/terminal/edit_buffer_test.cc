#include "terminal/edit_buffer.h"

#include <gtest/gtest.h>

#include <string>

namespace dunlin::terminal {
namespace {

EditBuffer buffer_of(const std::string& text) {
  EditBuffer buffer;
  buffer.set(text);
  return buffer;
}

// The text with | where the cursor is.
std::string shown(const EditBuffer& buffer) {
  std::string text = buffer.text();
  return text.insert(buffer.cursor(), "|");
}

TEST(EditBuffer, moves_over_whole_characters) {
  EditBuffer buffer = buffer_of("日e\u0301👨‍👩‍👧");
  buffer.left();
  EXPECT_EQ(shown(buffer), "日e\u0301|👨‍👩‍👧");
  buffer.left();
  EXPECT_EQ(shown(buffer), "日|e\u0301👨‍👩‍👧");
  buffer.erase_right();
  EXPECT_EQ(shown(buffer), "日|👨‍👩‍👧");
  buffer.right();
  buffer.backspace();
  EXPECT_EQ(shown(buffer), "日|");
}

TEST(EditBuffer, stops_at_its_ends) {
  EditBuffer buffer = buffer_of("a");
  buffer.right();
  buffer.erase_right();
  EXPECT_EQ(shown(buffer), "a|");
  buffer.left();
  buffer.left();
  buffer.backspace();
  EXPECT_EQ(shown(buffer), "|a");
  EXPECT_FALSE(buffer.up());
  EXPECT_FALSE(buffer.down());
}

TEST(EditBuffer, goes_by_words) {
  EditBuffer buffer = buffer_of("one, größer 2");
  buffer.word_left();
  EXPECT_EQ(shown(buffer), "one, größer |2");
  buffer.word_left();
  EXPECT_EQ(shown(buffer), "one, |größer 2");
  buffer.erase_word_left();
  EXPECT_EQ(shown(buffer), "|größer 2");
  buffer.word_right();
  EXPECT_EQ(shown(buffer), "größer| 2");
  buffer.erase_word_right();
  EXPECT_EQ(shown(buffer), "größer|");
  EXPECT_EQ(buffer.erased(), " 2");
}

TEST(EditBuffer, keeps_the_column_between_lines) {
  EditBuffer buffer = buffer_of("日本語x\nb\ncdef");
  buffer.left();
  EXPECT_TRUE(buffer.up());
  EXPECT_EQ(shown(buffer), "日本語x\nb|\ncdef");
  EXPECT_TRUE(buffer.up());
  EXPECT_EQ(shown(buffer), "日|本語x\nb\ncdef");
  EXPECT_FALSE(buffer.up());
  EXPECT_TRUE(buffer.down());
  EXPECT_EQ(shown(buffer), "日本語x\nb|\ncdef");
}

TEST(EditBuffer, ends_lines_at_line_feeds) {
  EditBuffer buffer = buffer_of("ab\ncd\nef");
  buffer.up();
  buffer.line_start();
  EXPECT_EQ(shown(buffer), "ab\n|cd\nef");
  buffer.line_end();
  EXPECT_EQ(shown(buffer), "ab\ncd|\nef");
  buffer.erase_to_line_start();
  EXPECT_EQ(shown(buffer), "ab\n|\nef");
  buffer.erase_to_line_start();
  EXPECT_EQ(buffer.erased(), "cd");
  buffer.left();
  buffer.left();
  buffer.erase_to_line_end();
  EXPECT_EQ(shown(buffer), "a|\n\nef");
}

TEST(EditBuffer, stands_behind_a_character_that_joins_the_next) {
  EditBuffer buffer = buffer_of("\u0301x");
  buffer.line_start();
  buffer.insert("e");
  EXPECT_EQ(shown(buffer), "e\u0301|x");
}

}  // namespace
}  // namespace dunlin::terminal
