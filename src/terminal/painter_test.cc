#include "terminal/painter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "terminal/graphemes.h"

namespace dunlin::terminal {
namespace {

// As much of a terminal as the painter uses: it wraps late (after a row is full the cursor stays on
// the last column until the next character), scrolls, and clears below.
class Screen {
 public:
  Screen(int columns, int rows) : columns_(columns), height_(rows), rows_(1) {}

  void write(std::string_view bytes) {
    for (std::size_t pos = 0; pos < bytes.size();) {
      if (bytes[pos] == '\x1b') {
        pos = sequence(bytes, pos + 2);
        continue;
      }
      const std::size_t end = next_grapheme(bytes, pos);
      put(std::string(bytes.substr(pos, end - pos)));
      pos = end;
    }
  }

  std::string row(int i) const {
    std::string text;
    for (const std::string& cell : rows_[static_cast<std::size_t>(i)]) text += cell;
    return text.erase(text.find_last_not_of(' ') + 1);
  }
  int num_rows() const { return static_cast<int>(rows_.size()); }
  int cursor_row() const { return row_; }
  int cursor_column() const { return std::min(column_, columns_ - 1); }

 private:
  using Row = std::vector<std::string>;  // a cell each; behind a wide character an empty one

  std::size_t sequence(std::string_view bytes, std::size_t pos) {
    int number = 0;
    while (bytes[pos] >= '0' && bytes[pos] <= '9') number = number * 10 + bytes[pos++] - '0';
    const int top = std::max(num_rows() - height_, 0);
    column_ = cursor_column();
    switch (bytes[pos]) {
      case 'A': row_ = std::max(row_ - number, top); break;
      case 'C': column_ = std::min(column_ + number, columns_ - 1); break;
      case 'J':
        rows_.resize(static_cast<std::size_t>(row_) + 1);
        rows_.back().resize(std::min(rows_.back().size(), static_cast<std::size_t>(column_)));
        break;
      default: ADD_FAILURE() << "a sequence that no test terminal knows: " << bytes[pos];
    }
    return pos + 1;
  }

  void put(const std::string& grapheme) {
    // "\r\n" is one grapheme.
    if (grapheme.find('\r') != std::string::npos) column_ = 0;
    if (grapheme.find('\n') != std::string::npos) line_feed();
    if (grapheme.find_first_of("\r\n") != std::string::npos) return;
    const int width = grapheme_width(grapheme);
    if (column_ + width > columns_) {
      column_ = 0;
      line_feed();
    }
    Row& row = rows_[static_cast<std::size_t>(row_)];
    row.resize(std::max(row.size(), static_cast<std::size_t>(column_ + width)), " ");
    row[static_cast<std::size_t>(column_)] = grapheme;
    for (int i = 1; i < width; ++i) row[static_cast<std::size_t>(column_ + i)] = "";
    column_ += width;
  }

  void line_feed() {
    if (++row_ == num_rows()) rows_.emplace_back();
  }

  int columns_, height_;
  int row_ = 0, column_ = 0;
  std::vector<Row> rows_;
};

std::string trimmed(std::string text) { return text.erase(text.find_last_not_of(' ') + 1); }

Layout lay(std::string_view text, std::size_t cursor, int columns) {
  return lay_out(">>> ", "... ", text, cursor, columns);
}

TEST(Layout, folds_rows_and_finds_the_cursor) {
  const Layout layout = lay("0123456789abcdef", 12, 16);
  ASSERT_EQ(layout.rows.size(), 2u);
  EXPECT_EQ(layout.rows[0].text, ">>> 0123456789ab");
  EXPECT_EQ(layout.rows[1].text, "cdef");
  EXPECT_EQ(layout.cursor_row, 1);
  EXPECT_EQ(layout.cursor_column, 0);
}

TEST(Layout, does_not_cut_wide_characters) {
  const Layout layout = lay("0123456789a日", 14, 16);
  EXPECT_EQ(layout.rows[0].text, ">>> 0123456789a");
  EXPECT_EQ(layout.rows[1].text, "日");
  EXPECT_EQ(layout.cursor_column, 2);
}

TEST(Layout, gives_the_cursor_a_row_behind_a_full_one) {
  const Layout at_end = lay("0123456789ab", 12, 16);
  ASSERT_EQ(at_end.rows.size(), 2u);
  EXPECT_EQ(at_end.cursor_row, 1);
  EXPECT_EQ(lay("0123456789ab", 0, 16).rows.size(), 1u);
}

TEST(Layout, has_a_column_for_a_cursor_on_what_has_none) {
  const Layout layout = lay("0123456789ab\u200bc", 12, 16);
  EXPECT_EQ(layout.cursor_row, 1);
  EXPECT_EQ(layout.cursor_column, 0);
}

TEST(Layout, shows_lines_and_tabs) {
  const Layout layout = lay("a\n\tb", 2, 40);
  ASSERT_EQ(layout.rows.size(), 2u);
  EXPECT_EQ(layout.rows[1].text, "...     b");
  EXPECT_EQ(layout.cursor_row, 1);
  EXPECT_EQ(layout.cursor_column, 4);
}

TEST(Painter, leaves_what_stands_above) {
  Screen screen(20, 10);
  screen.write("above\r\n");
  Painter painter;
  screen.write(painter.paint(lay(std::string(50, 'x'), 50, 20), 10));
  screen.write(painter.paint(lay("", 0, 20), 10));
  EXPECT_EQ(screen.row(0), "above");
  EXPECT_EQ(screen.row(1), ">>>");
  EXPECT_EQ(screen.num_rows(), 2);
}

TEST(Painter, shows_the_rows_around_the_cursor_and_in_the_end_all) {
  Screen screen(20, 3);
  Painter painter;
  const std::string text = "1\n2\n3\n4\n5";
  screen.write(painter.paint(lay(text, text.size(), 20), 3));
  EXPECT_EQ(screen.num_rows(), 3);
  EXPECT_EQ(screen.row(2), "... 5");
  screen.write(painter.paint(lay(text, 0, 20), 3));
  EXPECT_EQ(screen.row(0), ">>> 1");
  EXPECT_EQ(screen.cursor_row(), 0);
  screen.write(painter.paint(lay(text, 4, 20), 3));
  EXPECT_EQ(screen.row(0), ">>> 1");
  screen.write(painter.finish(lay(text, 0, 20)));
  EXPECT_EQ(screen.num_rows(), 6);
  EXPECT_EQ(screen.row(0), ">>> 1");
  EXPECT_EQ(screen.row(4), "... 5");
}

TEST(Painter, finds_its_rows_after_the_terminal_folded_them) {
  Painter painter;
  painter.paint(lay(std::string(70, 'x'), 70, 40), 24);  // rows of 40 and 34, cursor on the second
  // In 20 columns that is 2 rows above, and 34 / 20 of the cursor's own.
  EXPECT_TRUE(painter.paint(lay("x", 1, 20), 24).starts_with("\x1b[3A\r"));
}

// Whatever is painted after whatever: the screen shows the layout, and the cursor stands there.
TEST(Painter, shows_what_it_is_given) {
  const std::vector<std::string> pieces = {"a",
                                           "bc def ",
                                           "\n",
                                           "日",
                                           "日本語文字列テキスト",
                                           "\t",
                                           "e\u0301",

                                           "👨‍👩‍👧",
                                           std::string(37, 'x')};
  std::mt19937 random(7);
  const auto pick = [&random](std::size_t n) { return std::size_t{random()} % n; };
  for (int round = 0; round < 300; ++round) {
    const int columns = 16 + static_cast<int>(pick(30));
    constexpr int kRows = 40;
    Screen screen(columns, kRows);
    Painter painter;
    for (int step = 0; step < 10; ++step) {
      std::string text;
      std::vector<std::size_t> borders{0};
      for (std::size_t i = pick(12); i > 0; --i) text += pieces[pick(pieces.size())];
      for (std::size_t pos = 0; pos < text.size();)
        borders.push_back(pos = next_grapheme(text, pos));
      const Layout layout = lay(text, borders[pick(borders.size())], columns);
      ASSERT_LE(layout.rows.size(), std::size_t{kRows});
      screen.write(painter.paint(layout, kRows));
      ASSERT_EQ(screen.num_rows(), static_cast<int>(layout.rows.size())) << text;
      for (int i = 0; i < screen.num_rows(); ++i)
        ASSERT_EQ(screen.row(i), trimmed(layout.rows[static_cast<std::size_t>(i)].text)) << text;
      ASSERT_EQ(screen.cursor_row(), layout.cursor_row) << text;
      ASSERT_EQ(screen.cursor_column(), layout.cursor_column) << text;
    }
  }
}

}  // namespace
}  // namespace dunlin::terminal
