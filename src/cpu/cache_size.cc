#include "cpu/cache_size.h"

#include <unistd.h>

namespace dunlin {

std::int64_t l2_cache_bytes() {
  static const std::int64_t bytes = [] {
#ifdef _SC_LEVEL2_CACHE_SIZE
    const std::int64_t said = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (said > 0) return said;
#endif
    return std::int64_t{512} << 10;
  }();
  return bytes;
}

}  // namespace dunlin
