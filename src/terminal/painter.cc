#include "terminal/painter.h"

#include <fmt/format.h>

#include <algorithm>

namespace dunlin::terminal {
namespace {

constexpr const char* kClearBelow = "\x1b[J";

std::string up(int rows) { return rows > 0 ? fmt::format("\x1b[{}A", rows) : ""; }
std::string right(int columns) { return columns > 0 ? fmt::format("\x1b[{}C", columns) : ""; }

}  // namespace

std::string Painter::paint(const Layout& layout, int screen_rows) {
  const std::size_t height = static_cast<std::size_t>(std::max(screen_rows, 1));
  const auto cursor = static_cast<std::size_t>(layout.cursor_row);
  const std::size_t lowest_first = cursor + 1 > height ? cursor + 1 - height : 0;
  const std::size_t highest_first = layout.rows.size() > height ? layout.rows.size() - height : 0;
  first_ = std::min({std::max(first_, lowest_first), cursor, highest_first});
  return draw(layout, first_, std::min(height, layout.rows.size() - first_));
}

// Clears first: after a row that fills its columns, the cursor still stands on the last one, and
// clearing then would take it away.
std::string Painter::draw(const Layout& layout, std::size_t first, std::size_t num_rows) {
  if (layout.columns != columns_) fold(layout.columns);
  columns_ = layout.columns;
  std::string out = up(cursor_row_) + "\r" + kClearBelow;
  widths_.clear();
  for (std::size_t i = first; i < first + num_rows; ++i) {
    if (i > first) out += "\r\n";
    out += layout.rows[i].text;
    widths_.push_back(layout.rows[i].width);
  }
  cursor_row_ = layout.cursor_row - static_cast<int>(first);
  cursor_column_ = layout.cursor_column;
  out += up(static_cast<int>(num_rows) - 1 - cursor_row_) + "\r" + right(cursor_column_);
  return out;
}

std::string Painter::finish(const Layout& layout) {
  Layout whole = layout;
  whole.cursor_row = static_cast<int>(layout.rows.size()) - 1;
  whole.cursor_column = 0;
  std::string out = draw(whole, 0, layout.rows.size()) + "\r\n";
  forget();
  return out;
}

void Painter::fold(int columns) {
  const int width = std::max(columns, 1);
  int above = cursor_column_ / width;
  for (int i = 0; i < cursor_row_; ++i)
    above += std::max((widths_[static_cast<std::size_t>(i)] + width - 1) / width, 1);
  cursor_row_ = above;
}

void Painter::forget() {
  widths_.clear();
  cursor_row_ = cursor_column_ = 0;
  first_ = 0;
}

}  // namespace dunlin::terminal
