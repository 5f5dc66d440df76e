#include "net/file_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace dunlin {

int raise_file_limit(int wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  if (limit.rlim_cur < static_cast<rlim_t>(wanted)) {
    const rlimit raised{std::min(static_cast<rlim_t>(wanted), limit.rlim_max), limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  constexpr rlim_t kMost = std::numeric_limits<int>::max();
  return static_cast<int>(std::min(limit.rlim_cur, kMost));
}

}  // namespace dunlin
