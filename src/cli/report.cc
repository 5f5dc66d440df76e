#include <unistd.h>

#include <cstdio>

#include "cli/commands.h"

namespace dunlin::cli {

int report(const Status& status) {
  const bool colour = isatty(STDERR_FILENO) != 0;
  std::fprintf(stderr, "%sdunlin:%s %s\n", colour ? "\033[31m" : "", colour ? "\033[0m" : "",
               status.message().c_str());
  return 1;
}

}  // namespace dunlin::cli
