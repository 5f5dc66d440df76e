// A text that is being edited as rows of a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dunlin::terminal {

struct Layout {
  struct Row {
    std::string text;
    int width = 0;  // columns
  };
  std::vector<Row> rows;  // at least one
  int columns = 0;        // of the terminal
  int cursor_row = 0;
  int cursor_column = 0;  // below the number of columns
};

// `text` (valid UTF-8) behind `prompt`, its later lines behind `more_prompt`, folded where a row
// would be wider than `columns`; the cursor stands at the byte `cursor`. Tabs are spaces up to the
// next column that 8 divides. Fewer than 16 columns count as 16.
Layout lay_out(std::string_view prompt, std::string_view more_prompt, std::string_view text,
               std::size_t cursor, int columns);

}  // namespace dunlin::terminal
