#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace dunlin {

void check_failed(const char* file, int line, const char* condition, const char* message) {
  std::fprintf(stderr, "dunlin: internal check failed at %s:%d: %s (%s)\n", file, line, message,
               condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace dunlin
