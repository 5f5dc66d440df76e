#include "cpu/process_usage.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

namespace dunlin {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The fields of PID/stat behind the program's name, which may hold anything, brackets included.
void add_stat(const std::string& text, double boot_unix_s, ProcessUsage& usage) {
  constexpr std::size_t kUserTicks = 11, kSystemTicks = 12, kStartTicks = 19, kVirtualBytes = 20;
  constexpr std::size_t kResidentPages = 21;
  const auto end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return;
  std::istringstream in(text.substr(end_of_name + 1));
  std::array<double, kResidentPages + 1> fields{};
  std::string state;
  in >> state;
  for (std::size_t i = 1; i < fields.size(); ++i) in >> fields[i];
  if (!in) return;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  usage.cpu_seconds = (fields[kUserTicks] + fields[kSystemTicks]) / ticks;
  usage.start_unix_s = boot_unix_s > 0 ? boot_unix_s + fields[kStartTicks] / ticks : 0;
  usage.virtual_bytes = static_cast<std::int64_t>(fields[kVirtualBytes]);
  usage.resident_bytes =
      static_cast<std::int64_t>(fields[kResidentPages]) * ::sysconf(_SC_PAGESIZE);
}

// The number behind `name` at the start of a line; 0 where there is none.
double number_of_line(const std::string& text, const std::string& name) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name)) continue;
    std::istringstream rest(line.substr(name.size()));
    double number = 0;
    rest >> number;
    return number;
  }
  return 0;
}

}  // namespace

ProcessUsage process_usage(const std::string& proc_dir) {
  ProcessUsage usage;
  add_stat(read_text(proc_dir + "/self/stat"),
           number_of_line(read_text(proc_dir + "/stat"), "btime"), usage);
  usage.max_files = static_cast<std::int64_t>(
      number_of_line(read_text(proc_dir + "/self/limits"), "Max open files"));
  std::error_code error;
  const std::filesystem::directory_iterator files(proc_dir + "/self/fd", error);
  // The iterator's own descriptor is among them.
  if (!error) usage.open_files = std::distance(begin(files), end(files)) - 1;
  return usage;
}

}  // namespace dunlin
