#include "cpu/cgroup.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "cpu/memory_limit.h"
#include "cpu/thread_pool.h"
#include "support/scratch_folder.h"

namespace dunlin {
namespace {

class Cgroup : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path full = dir_ / path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  CgroupLimits limits() { return read_cgroup_limits(dir_ / "proc", dir_ / "sys"); }

  ScratchFolder scratch_;
  std::filesystem::path dir_ = scratch_.path();
};

TEST_F(Cgroup, NoFilesMeanNoLimits) {
  const CgroupLimits found = limits();
  EXPECT_FALSE(found.cpus);
  EXPECT_FALSE(found.memory_bytes);
  EXPECT_FALSE(found.memory_free);
}

TEST_F(Cgroup, Version2TakesTheTightestOfTheGroupsAround) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/a/b/cpu.max", "300000 100000\n");
  write("sys/a/cpu.max", "150000 100000\n");
  write("sys/cpu.max", "max 100000\n");
  write("sys/a/b/memory.max", "max\n");
  write("sys/a/memory.max", "1000000\n");
  write("sys/a/memory.current", "700000\n");
  write("sys/a/memory.stat", "anon 400000\nfile 300000\n");
  const CgroupLimits found = limits();
  ASSERT_TRUE(found.cpus);
  EXPECT_DOUBLE_EQ(*found.cpus, 1.5);
  EXPECT_EQ(found.memory_bytes, 1000000);
  EXPECT_EQ(found.memory_free, 600000);
}

TEST_F(Cgroup, Version1FindsItsControllers) {
  write("proc/self/cgroup", "4:memory:/box\n3:cpu,cpuacct:/box\n1:name=systemd:/x\n");
  write("sys/cpu/box/cpu.cfs_quota_us", "50000\n");
  write("sys/cpu/box/cpu.cfs_period_us", "100000\n");
  write("sys/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/cpu/cpu.cfs_period_us", "100000\n");
  write("sys/memory/box/memory.limit_in_bytes", "2000000\n");
  write("sys/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const CgroupLimits found = limits();
  ASSERT_TRUE(found.cpus);
  EXPECT_DOUBLE_EQ(*found.cpus, 0.5);
  EXPECT_EQ(found.memory_bytes, 2000000);
}

TEST_F(Cgroup, NonsenseIsNoLimit) {
  write("proc/self/cgroup", "0::/\nbroken\n:::\n");
  write("sys/cpu.max", "0 0\n");
  write("sys/memory.max", "many\n");
  const CgroupLimits found = limits();
  EXPECT_FALSE(found.cpus);
  EXPECT_FALSE(found.memory_bytes);
}

TEST_F(Cgroup, MemoryLimitIsTheSmallerOfMachineAndGroup) {
  write("proc/self/cgroup", "0::/\n");
  write("proc/meminfo",
        "MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable:  800 kB\nHugePages_Total: 0\n");
  MemoryLimit found = memory_limit(dir_ / "proc", dir_ / "sys");
  EXPECT_EQ(found.total_bytes, 1000 * 1024);
  EXPECT_EQ(found.available_bytes, 800 * 1024);
  write("sys/memory.max", "500000\n");
  write("sys/memory.current", "100000\n");
  found = memory_limit(dir_ / "proc", dir_ / "sys");
  EXPECT_EQ(found.total_bytes, 500000);
  EXPECT_EQ(found.available_bytes, 400000);
}

TEST(Machine, HasMemoryAndAtLeastOneThread) {
  EXPECT_GE(default_num_threads(), 1);
  const MemoryLimit found = memory_limit();
  EXPECT_GT(found.total_bytes, 0);
  EXPECT_GT(found.available_bytes, 0);
  EXPECT_LE(found.available_bytes, found.total_bytes);
}

TEST(MemoryBudget, LeavesAMarginThatFitsTheMachine) {
  constexpr std::int64_t kMiB = 1 << 20;
  const auto budget = [](std::int64_t mib) { return memory_budget({0, mib * kMiB}) / kMiB; };
  EXPECT_EQ(budget(400), 300);
  EXPECT_EQ(budget(4096), 4096 - 512);
  EXPECT_EQ(budget(65536), 65536 - 4096);
  EXPECT_EQ(memory_budget({}), 0);
}

}  // namespace
}  // namespace dunlin
