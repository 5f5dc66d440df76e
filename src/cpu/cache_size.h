// How large the processor's caches are.
#pragma once

#include <cstdint>

namespace dunlin {

// Bytes of a core's own second-level cache; 512 KiB where the system doesn't say. Safe from any
// thread.
std::int64_t l2_cache_bytes();

}  // namespace dunlin
