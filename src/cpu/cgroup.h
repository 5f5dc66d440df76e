// What the control groups (versions 1 and 2) around this process allow it. A container sees the
// whole machine in /proc, so these limits are the ones that count there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace dunlin {

// Limits of the innermost group and of every group around it: the tightest wins.
struct CgroupLimits {
  std::optional<double> cpus;                // CPU time a second of wall time
  std::optional<std::int64_t> memory_bytes;  // hard memory limit
  std::optional<std::int64_t> memory_free;   // the smallest of (limit - used), page cache aside
};

// Reads proc_dir/self/cgroup and the group files below sys_dir. Files that are missing or make no
// sense count as no limit.
CgroupLimits read_cgroup_limits(const std::string& proc_dir = "/proc",
                                const std::string& sys_dir = "/sys/fs/cgroup");

}  // namespace dunlin
