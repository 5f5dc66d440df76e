#include "terminal/layout.h"

#include <algorithm>

#include "terminal/graphemes.h"

namespace dunlin::terminal {
namespace {

constexpr int kMinColumns = 16;
constexpr int kTabColumns = 8;

class Folder {
 public:
  explicit Folder(int columns) : columns_(std::max(columns, kMinColumns)) {
    layout_.columns = columns;
  }

  void begin_row(std::string_view prompt) {
    layout_.rows.push_back({std::string(prompt), static_cast<int>(prompt.size())});
  }

  void place(std::string_view grapheme, bool at_cursor) {
    const bool tab = grapheme == "\t";
    int width = tab ? kTabColumns - row().width % kTabColumns : grapheme_width(grapheme);
    if (tab && row().width < columns_) width = std::min(width, columns_ - row().width);
    const bool no_column_for_cursor = at_cursor && row().width == columns_;
    if (row().width + width > columns_ || no_column_for_cursor) {
      begin_row("");
      if (tab) width = kTabColumns;
    }
    if (at_cursor) mark_cursor();
    row().text.append(tab ? std::string(static_cast<std::size_t>(width), ' ')
                          : std::string(grapheme));
    row().width += width;
  }

  void end_line(bool at_cursor) {
    if (!at_cursor) return;
    if (row().width == columns_) begin_row("");  // the cursor needs a column of its own
    mark_cursor();
  }

  Layout take() { return std::move(layout_); }

 private:
  Layout::Row& row() { return layout_.rows.back(); }
  void mark_cursor() {
    layout_.cursor_row = static_cast<int>(layout_.rows.size()) - 1;
    layout_.cursor_column = row().width;
  }

  const int columns_;
  Layout layout_;
};

}  // namespace

Layout lay_out(std::string_view prompt, std::string_view more_prompt, std::string_view text,
               std::size_t cursor, int columns) {
  Folder folder(columns);
  folder.begin_row(prompt);
  for (std::size_t pos = 0; pos < text.size();) {
    const std::size_t end = next_grapheme(text, pos);
    const bool at_cursor = pos <= cursor && cursor < end;
    if (text[pos] == '\n') {
      folder.end_line(at_cursor);
      folder.begin_row(more_prompt);
    } else {
      folder.place(text.substr(pos, end - pos), at_cursor);
    }
    pos = end;
  }
  folder.end_line(cursor >= text.size());
  return folder.take();
}

}  // namespace dunlin::terminal
