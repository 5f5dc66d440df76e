#include "cpu/memory_limit.h"

#include <algorithm>
#include <fstream>

#include "cpu/cgroup.h"

namespace dunlin {

MemoryLimit memory_limit(const std::string& proc_dir, const std::string& sys_dir) {
  MemoryLimit limit;
  std::ifstream in(proc_dir + "/meminfo");
  std::string name, unit;
  std::int64_t kib = 0;
  // Lines are "MemTotal:  123 kB"; the two wanted ones come before those without a unit.
  while (in >> name >> kib >> unit) {
    if (name == "MemTotal:") limit.total_bytes = kib * 1024;
    if (name == "MemAvailable:") limit.available_bytes = kib * 1024;
  }
  const CgroupLimits group = read_cgroup_limits(proc_dir, sys_dir);
  if (group.memory_bytes) limit.total_bytes = std::min(limit.total_bytes, *group.memory_bytes);
  if (group.memory_free)
    limit.available_bytes = std::min(limit.available_bytes, *group.memory_free);
  return limit;
}

std::int64_t memory_budget(const MemoryLimit& limit) {
  constexpr std::int64_t kUsualMargin = std::int64_t{512} << 20;
  const std::int64_t available = limit.available_bytes;
  return available - std::max(std::min(kUsualMargin, available / 4), available / 16);
}

}  // namespace dunlin
