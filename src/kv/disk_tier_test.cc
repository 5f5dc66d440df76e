#include "kv/disk_tier.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/scratch_folder.h"

namespace dunlin {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kBlockBytes = 500;
constexpr std::int64_t kFileBytes = 2 * kBlockBytes + std::int64_t{kBlockFileHeaderSize};
constexpr std::chrono::seconds kPatience{20};

class DiskTierTest : public ::testing::Test {
 protected:
  DiskTierConfig config(std::uint8_t identity = 1) {
    DiskTierConfig config;
    config.dir = folder_.path() + "/cache";
    config.max_bytes = 1 << 20;
    config.identity = {identity};
    config.payload_bytes = 2 * kBlockBytes;
    config.warn = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      warnings_.push_back(line);
    };
    return config;
  }
  std::unique_ptr<DiskTier> open(const DiskTierConfig& config) {
    auto tier = DiskTier::open(config);
    EXPECT_TRUE(tier) << tier.error().message();
    EXPECT_TRUE((*tier)->flush(kPatience)) << "the folder isn't listed";
    return std::move(*tier);
  }
  std::vector<std::string> warnings() {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }

  // Block i: its key, tokens and two groups' bytes are functions of i.
  static PrefixKey key(int i) {
    PrefixKey key{static_cast<std::uint8_t>(i)};
    key[1] = static_cast<std::uint8_t>(i >> 8);
    return key;
  }
  static std::vector<TokenId> tokens(int i) { return std::vector<TokenId>(kBlockSize, 1000 + i); }
  static std::vector<std::byte> bytes(int i, int group) {
    std::vector<std::byte> out(kBlockBytes);
    for (std::size_t b = 0; b < out.size(); ++b)
      out[b] = static_cast<std::byte>(static_cast<int>(b) * 7 + i * 3 + group);
    return out;
  }
  static void save(DiskTier& tier, int i) {
    const auto first = bytes(i, 0), second = bytes(i, 1);
    const std::span<const std::byte> blocks[] = {first, second};
    tier.save(key(i), tokens(i).data(), blocks);
  }
  // The blocks are there and right, or absent and untouched.
  static bool load(DiskTier& tier, int i) {
    std::vector<std::byte> first(kBlockBytes, std::byte{0xEE}), second = first;
    const auto untouched = first;
    const std::span<std::byte> blocks[] = {first, second};
    const bool found = tier.load(key(i), tokens(i).data(), blocks);
    EXPECT_EQ(first, found ? bytes(i, 0) : untouched);
    EXPECT_EQ(second, found ? bytes(i, 1) : untouched);
    return found;
  }
  std::string path(int i, std::uint8_t identity = 1) {
    const std::string name = to_hex(key(i));
    return folder_.path() + "/cache/" + to_hex({identity}) + "/" + name.substr(0, 2) + "/" + name +
           ".kv";
  }
  std::int64_t bytes_on_disk() {
    std::int64_t sum = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
      if (entry.is_regular_file()) sum += static_cast<std::int64_t>(entry.file_size());
    return sum;
  }

  ScratchFolder folder_;
  std::mutex mutex_;
  std::vector<std::string> warnings_;
};

TEST_F(DiskTierTest, KeepsBlocksAcrossProcesses) {
  {
    const auto tier = open(config());
    for (int i = 0; i < 20; ++i) save(*tier, i);
    save(*tier, 3);
    ASSERT_TRUE(tier->flush(kPatience));
    EXPECT_EQ(tier->stats().num_written, 20u);
    EXPECT_TRUE(load(*tier, 5));
    save(*tier, 20);  // written by the destructor
  }
  const auto tier = open(config());
  for (int i = 0; i <= 20; ++i) {
    EXPECT_TRUE(tier->contains(key(i)));
    EXPECT_TRUE(load(*tier, i)) << i;
  }
  EXPECT_FALSE(tier->contains(key(21)));
  EXPECT_FALSE(load(*tier, 21));
  EXPECT_EQ(tier->stats().num_bytes, 21 * kFileBytes);
  EXPECT_THAT(warnings(), IsEmpty());
  struct stat info{};
  ASSERT_EQ(::stat(path(0).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u) << "prompts are nobody else's business";
}

TEST_F(DiskTierTest, DropsFilesThatAreNotRightWithAWarning) {
  const auto damage = [](const std::string& path, int kind) {
    if (kind == 0) fs::resize_file(path, 700);  // cut
    if (kind == 1)
      std::fstream(path, std::ios::in | std::ios::out).seekp(400).put('!');  // one byte
    if (kind == 2) std::ofstream(path, std::ios::trunc);                     // empty
    if (kind == 3) std::ofstream(path, std::ios::app) << "more";
    if (kind == 4) {
      fs::remove(path);
      ::mkfifo(path.c_str(), 0600);
    }
  };
  const auto tier = open(config());
  for (int i = 0; i < 6; ++i) save(*tier, i);
  ASSERT_TRUE(tier->flush(kPatience));
  for (int kind = 0; kind < 5; ++kind) {
    damage(path(kind), kind);
    EXPECT_FALSE(load(*tier, kind)) << kind;
    EXPECT_FALSE(tier->contains(key(kind)));
    EXPECT_FALSE(fs::exists(path(kind))) << kind;
    ASSERT_EQ(warnings().size(), static_cast<std::size_t>(kind) + 1);
    EXPECT_THAT(warnings().back(), HasSubstr("is dropped"));
  }
  fs::rename(path(5), path(0));  // the right bytes under another block's name
  EXPECT_FALSE(load(*tier, 0));
  EXPECT_THAT(warnings().back(), HasSubstr("other tokens"));
  EXPECT_EQ(tier->stats().num_bad, 6u);
  save(*tier, 1);
  ASSERT_TRUE(tier->flush(kPatience));
  EXPECT_TRUE(load(*tier, 1)) << "it is written again";
}

TEST_F(DiskTierTest, NeverReadsBlocksOfAnotherIdentity) {
  {
    const auto tier = open(config(1));
    save(*tier, 0);
  }
  const auto other = open(config(2));
  EXPECT_FALSE(other->contains(key(0)));
  fs::create_directories(fs::path(path(0, 2)).parent_path());
  fs::copy(path(0, 1), path(0, 2));
  EXPECT_FALSE(load(*other, 0));
  EXPECT_THAT(warnings().back(), HasSubstr("another model"));
}

TEST_F(DiskTierTest, StaysWithinItsSizeAndKeepsWhatWasUsedLast) {
  DiskTierConfig small = config();
  small.max_bytes = 70 * kFileBytes;
  {
    const auto other = open(config(2));  // another model's blocks are the oldest
    for (int i = 500; i < 510; ++i) save(*other, i);
  }
  const auto tier = open(small);
  for (int i = 0; i < 150; ++i) {
    save(*tier, i);
    ASSERT_TRUE(tier->flush(kPatience));
    ASSERT_LE(bytes_on_disk(), small.max_bytes) << i;
    ASSERT_EQ(tier->stats().num_bytes, bytes_on_disk()) << i;
    ASSERT_TRUE(load(*tier, 0)) << "used again and again, " << i;
  }
  EXPECT_FALSE(tier->contains(key(1)));
  EXPECT_TRUE(tier->contains(key(149)));
  EXPECT_FALSE(fs::exists(path(505, 2)));
  EXPECT_GT(tier->stats().num_evicted, 60u);
}

TEST_F(DiskTierTest, OneProcessWritesTheOthersRead) {
  const auto first = open(config());
  save(*first, 0);
  ASSERT_TRUE(first->flush(kPatience));
  const auto second = open(config());
  EXPECT_THAT(warnings().back(), HasSubstr("only reads"));
  EXPECT_TRUE(load(*second, 0));
  save(*second, 1);
  EXPECT_EQ(second->stats().num_dropped, 1u);
  save(*first, 2);
  ASSERT_TRUE(first->flush(kPatience));
  EXPECT_TRUE(second->contains(key(2))) << "also what came later";
  EXPECT_TRUE(load(*second, 2));
  fs::remove(path(0));
  EXPECT_TRUE(first->contains(key(0)));
  EXPECT_FALSE(load(*first, 0)) << "removed behind its back";
  EXPECT_FALSE(first->contains(key(0)));
}

TEST_F(DiskTierTest, ClearRemovesItsOwnFilesOnly) {
  const auto other = open(config(2));
  save(*other, 7);
  ASSERT_TRUE(other->flush(kPatience));
  const auto tier = open(config());
  for (int i = 0; i < 30; ++i) save(*tier, i);
  tier->clear();
  EXPECT_FALSE(tier->contains(key(0)));
  ASSERT_TRUE(tier->flush(kPatience));
  EXPECT_FALSE(fs::exists(path(0)));
  EXPECT_TRUE(load(*other, 7));
  save(*tier, 0);
  ASSERT_TRUE(tier->flush(kPatience));
  EXPECT_TRUE(load(*tier, 0));
  EXPECT_EQ(tier->stats().num_bytes, 2 * kFileBytes);
}

TEST_F(DiskTierTest, LeavesForeignFilesAloneAndSweepsItsOwnHalves) {
  const std::string root = folder_.path() + "/cache/" + to_hex({1}) + "/";
  fs::create_directories(root + "00");
  for (const char* name : {"notes.txt", "00/other.kv", "00/0123.kv"})
    std::ofstream(root + name) << 1;
  std::ofstream(root + "tmp-1-1") << "half";
  const auto tier = open(config());
  EXPECT_FALSE(fs::exists(root + "tmp-1-1"));
  tier->clear();
  ASSERT_TRUE(tier->flush(kPatience));
  for (const char* name : {"notes.txt", "00/other.kv", "00/0123.kv"})
    EXPECT_TRUE(fs::exists(root + name)) << name;
}

TEST_F(DiskTierTest, DropsWhatItCantWriteInTime) {
  DiskTierConfig narrow = config();
  narrow.max_queued_bytes = 3 * kFileBytes;
  const auto tier = open(narrow);
  for (int i = 0; i < 200; ++i) save(*tier, i);
  ASSERT_TRUE(tier->flush(kPatience));
  const DiskTierStats stats = tier->stats();
  EXPECT_EQ(stats.num_written + stats.num_dropped, 200u);
  EXPECT_GE(stats.num_written, 3u);
}

TEST_F(DiskTierTest, StopsWritingWhereItCantAndGoesOnReading) {
  const auto tier = open(config());
  save(*tier, 0);
  ASSERT_TRUE(tier->flush(kPatience));
  // A file where the folder of block 1 has to be.
  std::ofstream(fs::path(path(1)).parent_path().string()) << "in the way";
  for (int i = 1; i < 4; ++i) save(*tier, i);
  ASSERT_TRUE(tier->flush(kPatience));
  EXPECT_EQ(warnings().size(), 1u);
  EXPECT_THAT(warnings().back(), HasSubstr("no longer written"));
  EXPECT_EQ(tier->stats().num_written, 1u);
  EXPECT_EQ(tier->stats().num_dropped, 3u);
  EXPECT_TRUE(load(*tier, 0));
  for (const auto& entry : fs::directory_iterator(folder_.path() + "/cache/" + to_hex({1})))
    EXPECT_FALSE(entry.path().filename().string().starts_with("tmp-")) << "a half is left";
}

// As on a disk that is full: a file ends half-way.
TEST_F(DiskTierTest, LeavesNoHalfWhereTheDiskIsFull) {
  const auto tier = open(config());
  save(*tier, 0);
  ASSERT_TRUE(tier->flush(kPatience));
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const rlimit half{kFileBytes / 2, old_limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &half), 0);
  for (int i = 1; i < 4; ++i) save(*tier, i);
  const bool is_flushed = tier->flush(kPatience);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_TRUE(is_flushed);
  EXPECT_EQ(warnings().size(), 1u);
  EXPECT_THAT(warnings().back(), HasSubstr("no longer written"));
  EXPECT_EQ(tier->stats().num_dropped, 3u);
  EXPECT_EQ(bytes_on_disk(), kFileBytes) << "only the first block";
  EXPECT_FALSE(tier->contains(key(1)));
  EXPECT_TRUE(load(*tier, 0));
}

TEST_F(DiskTierTest, RefusesFoldersAndSizesThatCantWork) {
  DiskTierConfig tiny = config();
  tiny.max_bytes = 1000;
  const auto refused = DiskTier::open(tiny);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), StatusCode::kInvalidArgument);
  std::ofstream(folder_.path() + "/file") << 1;
  DiskTierConfig blocked = config();
  blocked.dir = folder_.path() + "/file";
  EXPECT_FALSE(DiskTier::open(blocked));
  blocked.dir = folder_.path() + "/file/below";
  const auto below = DiskTier::open(blocked);
  ASSERT_FALSE(below);
  EXPECT_THAT(below.error().message(), HasSubstr("/file/below"));
}

}  // namespace
}  // namespace dunlin
