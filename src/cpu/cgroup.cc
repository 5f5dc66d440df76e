#include "cpu/cgroup.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>

namespace dunlin {
namespace {

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

std::optional<std::int64_t> parse_int(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> read_int(const std::string& path) {
  const std::optional<std::string> text = read_file(path);
  return text ? parse_int(*text) : std::nullopt;
}

template <typename T>
void lower(std::optional<T>& limit, T value) {
  limit = limit ? std::min(*limit, value) : value;
}

// The value of `key` in a "key value" file such as memory.stat, else 0.
std::int64_t stat_value(const std::string& path, std::string_view key) {
  std::ifstream in(path);
  std::string name;
  std::int64_t value = 0;
  while (in >> name >> value) {
    if (name == key) return value;
  }
  return 0;
}

// Version 1 writes "no limit" as a number near the top of the range.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

void add_memory(CgroupLimits& limits, std::optional<std::int64_t> limit,
                std::optional<std::int64_t> used, std::int64_t cache) {
  if (!limit || *limit <= 0 || *limit >= kNoLimit) return;
  lower(limits.memory_bytes, *limit);
  const std::int64_t held = std::max<std::int64_t>(0, used.value_or(0) - cache);
  lower(limits.memory_free, std::max<std::int64_t>(0, *limit - held));
}

void add_cpus(CgroupLimits& limits, std::optional<std::int64_t> quota,
              std::optional<std::int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return;
  lower(limits.cpus, static_cast<double>(*quota) / static_cast<double>(*period));
}

void add_v2_group(CgroupLimits& limits, const std::string& dir) {
  // "max 100000" is no limit: parse_int refuses the word.
  if (const auto text = read_file(dir + "/cpu.max")) {
    const std::size_t space = text->find(' ');
    if (space != std::string::npos) {
      add_cpus(limits, parse_int(*text), parse_int(std::string_view(*text).substr(space + 1)));
    }
  }
  add_memory(limits, read_int(dir + "/memory.max"), read_int(dir + "/memory.current"),
             stat_value(dir + "/memory.stat", "file"));
}

void add_v1_cpu_group(CgroupLimits& limits, const std::string& dir) {
  add_cpus(limits, read_int(dir + "/cpu.cfs_quota_us"), read_int(dir + "/cpu.cfs_period_us"));
}

void add_v1_memory_group(CgroupLimits& limits, const std::string& dir) {
  add_memory(limits, read_int(dir + "/memory.limit_in_bytes"),
             read_int(dir + "/memory.usage_in_bytes"),
             stat_value(dir + "/memory.stat", "total_cache"));
}

// Calls visit for root + path and for each group around it, root last. Inside a container the
// path of /proc may not exist below the mount; its groups then read as no limit and the root's
// files are the container's own.
template <typename Visit>
void for_each_group(const std::string& root, std::string path, Visit visit) {
  while (!path.empty() && path != "/") {
    visit(root + path);
    path.resize(path.find_last_of('/'));
  }
  visit(root);
}

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (list.substr(0, comma) == word) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace

CgroupLimits read_cgroup_limits(const std::string& proc_dir, const std::string& sys_dir) {
  CgroupLimits limits;
  std::ifstream in(proc_dir + "/self/cgroup");
  std::string line;
  while (std::getline(in, line)) {
    // "hierarchy:controllers:/path"; version 2 has hierarchy 0 and no controllers.
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || line.size() <= second + 1 || line[second + 1] != '/')
      continue;
    const std::string_view controllers =
        std::string_view(line).substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      for_each_group(sys_dir, path, [&](const std::string& dir) { add_v2_group(limits, dir); });
    }
    if (has_word(controllers, "cpu")) {
      for_each_group(sys_dir + "/cpu", path,
                     [&](const std::string& dir) { add_v1_cpu_group(limits, dir); });
    }
    if (has_word(controllers, "memory")) {
      for_each_group(sys_dir + "/memory", path,
                     [&](const std::string& dir) { add_v1_memory_group(limits, dir); });
    }
  }
  return limits;
}

}  // namespace dunlin
