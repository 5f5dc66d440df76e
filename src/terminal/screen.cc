#include "terminal/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace dunlin::terminal {

bool can_move_cursor(int fd) {
  const char* term = std::getenv("TERM");
  return isatty(fd) != 0 && term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
}

ScreenSize screen_size(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

}  // namespace dunlin::terminal
