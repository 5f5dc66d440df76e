// How much memory this process may take: the machine's, cut by the control groups around it.
#pragma once

#include <cstdint>
#include <string>

namespace dunlin {

struct MemoryLimit {
  std::int64_t total_bytes = 0;      // physical memory or the group's hard limit
  std::int64_t available_bytes = 0;  // of that, free now or held only by the page cache
};

// Zeros where the system tells nothing.
MemoryLimit memory_limit(const std::string& proc_dir = "/proc",
                         const std::string& sys_dir = "/sys/fs/cgroup");

// What a program may plan with and leave room to the rest of the system: what is available, less
// 512 MiB (a quarter, where that is less) or a sixteenth, whichever is more. 0 where nothing is
// told.
std::int64_t memory_budget(const MemoryLimit& limit);

}  // namespace dunlin
