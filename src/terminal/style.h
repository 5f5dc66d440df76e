// Colours, where they are wanted.
#pragma once

#include <string>
#include <string_view>

namespace dunlin::terminal {

// `fd` is a terminal that is more than dumb, and NO_COLOR (no-color.org) is not set.
bool wants_colour(int fd);

// `text` dimmed or red where colours are wanted.
std::string dim(std::string_view text, int fd);
std::string red(std::string_view text, int fd);

}  // namespace dunlin::terminal
