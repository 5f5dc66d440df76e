// Keeps a Layout on the screen, below what was printed before it: gives the bytes that turn what
// stands there into what should. Moves relative to where the cursor is, so it needs no answers
// from the terminal.
#pragma once

#include <string>
#include <vector>

#include "terminal/layout.h"

namespace dunlin::terminal {

class Painter {
 public:
  // Of more rows than `screen_rows`, those around the cursor. Where the columns are not those of
  // the last call, the terminal is taken to have folded what it shows.
  std::string paint(const Layout& layout, int screen_rows);
  // All rows, for good; the cursor goes to the beginning of the row below.
  std::string finish(const Layout& layout);
  // The screen was cleared, or something else has been printed: the next paint begins where the
  // cursor is.
  void forget();

 private:
  std::string draw(const Layout& layout, std::size_t first, std::size_t num_rows);
  void fold(int columns);

  int columns_ = 0;
  std::vector<int> widths_;  // of the rows on the screen
  int cursor_row_ = 0;       // among them
  int cursor_column_ = 0;
  std::size_t first_ = 0;  // row of the layout that is the first on the screen
};

}  // namespace dunlin::terminal
