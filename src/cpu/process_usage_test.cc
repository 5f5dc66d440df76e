#include "cpu/process_usage.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include "support/scratch_folder.h"

namespace dunlin {
namespace {

TEST(ProcessUsage, sees_memory_files_and_time_of_this_process) {
  const ProcessUsage before = process_usage();
  constexpr std::size_t kBytes = 64 << 20;
  const std::vector<char> touched(kBytes, 'x');
  asm volatile("" : : "r"(touched.data()) : "memory");  // an unread vector may be left out
  const int file = ::dup(0);
  const ProcessUsage after = process_usage();
  ::close(file);
  EXPECT_GT(after.resident_bytes - before.resident_bytes, static_cast<std::int64_t>(kBytes / 2));
  EXPECT_GE(after.virtual_bytes, after.resident_bytes);
  EXPECT_EQ(after.open_files, before.open_files + 1);
  EXPECT_GT(after.max_files, after.open_files);
  EXPECT_GE(after.cpu_seconds, before.cpu_seconds);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const double unix_s = std::chrono::duration<double>(now).count();
  EXPECT_GT(after.start_unix_s, unix_s - 3600);
  EXPECT_LT(after.start_unix_s, unix_s + 60);
}

TEST(ProcessUsage, reads_past_a_name_with_brackets_and_spaces) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.path() + "/self");
  std::ofstream(folder.path() + "/self/stat")
      << "7 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 0 0 0 0 1000 8192 2 0";
  const ProcessUsage usage = process_usage(folder.path());
  EXPECT_EQ(usage.virtual_bytes, 8192);
  EXPECT_EQ(usage.resident_bytes, 2 * ::sysconf(_SC_PAGESIZE));
  EXPECT_DOUBLE_EQ(usage.cpu_seconds, 300.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  EXPECT_EQ(usage.start_unix_s, 0);
}

TEST(ProcessUsage, is_zero_where_nothing_is_told) {
  const ProcessUsage usage = process_usage("/no/such/folder");
  EXPECT_EQ(usage.resident_bytes, 0);
  EXPECT_EQ(usage.open_files, 0);
}

}  // namespace
}  // namespace dunlin
