#include "terminal/line_editor.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "terminal/multi_line.h"

namespace dunlin::terminal {
namespace {

using Action = LineEditor::Action;

class LineEditorTest : public testing::Test {
 protected:
  LineEditorTest() { editor_.begin(); }
  Action press(KeyKind kind) { return editor_.press({kind, ""}); }
  Action type(std::string text) { return editor_.press({KeyKind::kText, std::move(text)}); }
  const std::string& text() const { return editor_.buffer().text(); }

  std::vector<std::string> history_{"first", "second\nof two lines"};
  LineEditor editor_{history_};
};

TEST_F(LineEditorTest, sends_with_enter) {
  type("hello");
  EXPECT_EQ(press(KeyKind::kEnter), Action::kSend);
  EXPECT_EQ(text(), "hello");
}

TEST_F(LineEditorTest, goes_on_behind_a_backslash) {
  type("one\\");
  EXPECT_EQ(press(KeyKind::kEnter), Action::kNone);
  type("two");
  EXPECT_EQ(text(), "one\ntwo");
  EXPECT_EQ(press(KeyKind::kEnter), Action::kSend);
}

TEST_F(LineEditorTest, goes_on_inside_a_block) {
  type("\"\"\"a");
  EXPECT_EQ(press(KeyKind::kEnter), Action::kNone);
  type("b\\");
  EXPECT_EQ(press(KeyKind::kEnter), Action::kNone);
  type("c\"\"\"");
  EXPECT_EQ(press(KeyKind::kEnter), Action::kSend);
  EXPECT_EQ(message_of(text()), "a\nb\\\nc");
}

TEST_F(LineEditorTest, takes_a_paste_of_several_lines) {
  EXPECT_EQ(editor_.press({KeyKind::kPaste, "a\\\nb\n"}), Action::kNone);
  EXPECT_EQ(press(KeyKind::kEnter), Action::kSend);
  EXPECT_EQ(message_of(text()), "a\\\nb");
}

TEST_F(LineEditorTest, walks_through_the_history_and_back_to_the_draft) {
  type("draft");
  press(KeyKind::kUp);
  EXPECT_EQ(text(), "second\nof two lines");
  press(KeyKind::kUp);  // inside the entry
  EXPECT_EQ(text(), "second\nof two lines");
  press(KeyKind::kUp);
  EXPECT_EQ(text(), "first");
  press(KeyKind::kUp);
  EXPECT_EQ(text(), "first");
  press(KeyKind::kDown);
  press(KeyKind::kNext);
  EXPECT_EQ(text(), "draft");
  press(KeyKind::kNext);
  EXPECT_EQ(text(), "draft");
}

TEST_F(LineEditorTest, empties_at_control_c_before_it_interrupts) {
  type("half a thought");
  EXPECT_EQ(press(KeyKind::kInterrupt), Action::kNone);
  EXPECT_EQ(text(), "");
  EXPECT_EQ(press(KeyKind::kInterrupt), Action::kInterrupt);
  press(KeyKind::kYank);
  EXPECT_EQ(text(), "half a thought");
}

TEST_F(LineEditorTest, ends_at_control_d_only_when_empty) {
  type("ab");
  press(KeyKind::kHome);
  EXPECT_EQ(press(KeyKind::kEndOfInput), Action::kNone);
  EXPECT_EQ(text(), "b");
  press(KeyKind::kDelete);
  EXPECT_EQ(press(KeyKind::kEndOfInput), Action::kEnd);
}

TEST_F(LineEditorTest, bounds_a_message) {
  EXPECT_EQ(type(std::string(LineEditor::kMaxBytes, 'x')), Action::kNone);
  EXPECT_EQ(type("y"), Action::kTooLong);
  EXPECT_EQ(text().size(), LineEditor::kMaxBytes);
}

TEST(MultiLine, has_marks_only_at_the_beginning) {
  EXPECT_EQ(continuation("\"\"\""), Continuation::kBlock);
  EXPECT_EQ(continuation("\"\"\"\"\""), Continuation::kBlock);
  EXPECT_EQ(continuation("\"\"\"\"\"\""), Continuation::kNone);
  EXPECT_EQ(continuation("x \"\"\" y"), Continuation::kNone);
  EXPECT_EQ(continuation("x\\"), Continuation::kBackslash);
  EXPECT_EQ(message_of("\"\"\"\nx\n\"\"\" \n"), "x");
  EXPECT_EQ(message_of("\"\"\"x"), "x");
  EXPECT_EQ(message_of("say \"\"\""), "say \"\"\"");
}

}  // namespace
}  // namespace dunlin::terminal
