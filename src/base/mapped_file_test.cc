#include "base/mapped_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/scratch_folder.h"

namespace dunlin {
namespace {

using testing::HasSubstr;

class MappedFileTest : public testing::Test {
 protected:
  std::string write(std::string_view text) {
    const std::string path = folder_ + "/file";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  ScratchFolder scratch_;
  const std::string& folder_ = scratch_.path();
};

TEST_F(MappedFileTest, ShowsTheBytesOfTheFile) {
  auto file = MappedFile::open(write("hello"));
  ASSERT_TRUE(file) << file.error().message();
  ASSERT_EQ(file->bytes().size(), 5u);
  EXPECT_EQ(static_cast<char>(file->bytes()[1]), 'e');
  EXPECT_TRUE(file->check_unchanged());
}

TEST_F(MappedFileTest, AnEmptyFileIsAnEmptyMap) {
  auto file = MappedFile::open(write(""));
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->bytes().empty());
}

TEST_F(MappedFileTest, NamesTheFileThatIsMissingOrNoFile) {
  const auto missing = MappedFile::open(folder_ + "/none");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.error().message(), HasSubstr(folder_ + "/none"));
  EXPECT_THAT(MappedFile::open(folder_).error().message(), HasSubstr("directory"));
  ASSERT_EQ(mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
  EXPECT_THAT(MappedFile::open(folder_ + "/fifo").error().message(), HasSubstr("regular file"));
}

TEST_F(MappedFileTest, SeesThatTheFileWasShortened) {
  const std::string path = write(std::string(10000, 'x'));
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file);
  ASSERT_EQ(truncate(path.c_str(), 100), 0);
  const Outcome outcome = file->check_unchanged();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), StatusCode::kDataLoss);
  EXPECT_THAT(outcome.error().message(), HasSubstr("10000"));
}

TEST_F(MappedFileTest, DroppedPagesComeBack) {
  const std::string text(100000, 'y');
  auto file = MappedFile::open(write(text));
  ASSERT_TRUE(file);
  file->drop_pages(1, 99998);
  file->drop_pages(99999, 1u << 30);
  file->drop_pages(1u << 30, 5);
  for (const std::byte byte : file->bytes()) ASSERT_EQ(static_cast<char>(byte), 'y');
}

// Pages of files that this process has mapped in: the third number of /proc/self/statm.
long resident_file_pages() {
  long size = 0, resident = 0, shared = 0;
  std::ifstream("/proc/self/statm") >> size >> resident >> shared;
  return shared;
}

TEST_F(MappedFileTest, DroppingPagesTakesThemOutOfTheProcess) {
  constexpr std::size_t kSize = std::size_t{16} << 20;
  auto file = MappedFile::open(write(std::string(kSize, 'p')));
  ASSERT_TRUE(file);
  unsigned sum = 0;
  for (std::size_t i = 0; i < kSize; i += 4096) sum += std::to_integer<unsigned>(file->bytes()[i]);
  ASSERT_EQ(sum, kSize / 4096 * 'p');
  const long before = resident_file_pages();
  file->drop_pages(0, kSize);
  EXPECT_LE(resident_file_pages(), before - static_cast<long>(kSize / 4096 * 3 / 4));
}

void read_past_the_end(const std::string& path) {
  install_mapped_file_fault_handler();
  auto file = MappedFile::open(path);
  if (!file || truncate(path.c_str(), 0) != 0) _exit(3);
  volatile std::byte sink = file->bytes()[50000];
  (void)sink;
}

TEST_F(MappedFileTest, AFaultInAShortenedFileEndsWithOneLineThatNamesIt) {
  const std::string path = write(std::string(100000, 'z'));
  EXPECT_EXIT(read_past_the_end(path), testing::ExitedWithCode(1),
              "dunlin: .*/file: cannot be read");
}

TEST_F(MappedFileTest, AnotherBusErrorStillKills) {
  EXPECT_EXIT(
      {
        install_mapped_file_fault_handler();
        raise(SIGBUS);
        raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace dunlin
