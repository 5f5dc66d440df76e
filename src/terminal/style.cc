#include "terminal/style.h"

#include <cstdlib>

#include "terminal/screen.h"

namespace dunlin::terminal {
namespace {

std::string styled(std::string_view text, int fd, std::string_view code) {
  if (!wants_colour(fd)) return std::string(text);
  return std::string(code).append(text).append("\x1b[0m");
}

}  // namespace

bool wants_colour(int fd) {
  const char* no_colour = std::getenv("NO_COLOR");
  return can_move_cursor(fd) && (no_colour == nullptr || *no_colour == '\0');
}

std::string dim(std::string_view text, int fd) { return styled(text, fd, "\x1b[2m"); }
std::string red(std::string_view text, int fd) { return styled(text, fd, "\x1b[31m"); }

}  // namespace dunlin::terminal
