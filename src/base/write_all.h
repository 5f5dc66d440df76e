// Writes to a file descriptor, whole.
#pragma once

#include <string_view>

namespace dunlin {

// Writes all of `bytes`, however many calls that takes; false, with errno, where it can't be
// written. Safe in a signal handler.
bool write_all(int fd, std::string_view bytes);

}  // namespace dunlin
