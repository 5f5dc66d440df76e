// What this process takes of the machine, as its own entries in /proc say.
#pragma once

#include <cstdint>
#include <string>

namespace dunlin {

// Zeros where the system tells nothing.
struct ProcessUsage {
  std::int64_t resident_bytes = 0;  // in memory now
  std::int64_t virtual_bytes = 0;   // reserved, touched or not
  double cpu_seconds = 0;           // user and system, all threads
  double start_unix_s = 0;
  std::int64_t open_files = 0;  // descriptors: connections, files
  std::int64_t max_files = 0;   // and how many there may be
};
ProcessUsage process_usage(const std::string& proc_dir = "/proc");

}  // namespace dunlin
