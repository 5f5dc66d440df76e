// What a terminal can show.
#pragma once

namespace dunlin::terminal {

// `fd` is a terminal that obeys cursor movements: TERM is set, and not "dumb".
bool can_move_cursor(int fd);

struct ScreenSize {
  int columns = 80, rows = 24;
};
// Of the terminal `fd`; 80 x 24 where it does not say.
ScreenSize screen_size(int fd);

}  // namespace dunlin::terminal
