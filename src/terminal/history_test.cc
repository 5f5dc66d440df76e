#include "terminal/history.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/scratch_folder.h"

namespace dunlin::terminal {
namespace {

namespace fs = std::filesystem;
using Entries = std::vector<std::string>;

class HistoryTest : public testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/state/dunlin/history"; }
  std::string content() const {
    std::ifstream file(path(), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  void write(const std::string& text) const {
    fs::create_directories(fs::path(path()).parent_path());
    std::ofstream(path(), std::ios::binary) << text;
  }

  ScratchFolder folder_;
};

TEST_F(HistoryTest, comes_back_with_the_next_start) {
  {
    History history(path());
    history.add("one");
    history.add("two\nlines \\n and a backslash \\");
    history.add("日本語");
  }
  EXPECT_EQ(History(path()).entries(),
            (Entries{"one", "two\nlines \\n and a backslash \\", "日本語"}));
}

TEST_F(HistoryTest, is_for_its_owner_only) {
  History(path()).add("secret");
  struct stat facts{};
  ASSERT_EQ(stat(path().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
}

TEST_F(HistoryTest, is_written_as_it_comes) {
  History history(path());
  history.add("one");
  EXPECT_EQ(content(), "one\n");
}

TEST_F(HistoryTest, is_shared_by_two_programs) {
  History a(path()), b(path());
  a.add("of a");
  b.add("of b");
  a.add("of a again");
  EXPECT_EQ(History(path()).entries(), (Entries{"of a", "of b", "of a again"}));
}

TEST_F(HistoryTest, skips_repetitions) {
  History history(path());
  history.add("x");
  history.add("x");
  EXPECT_EQ(history.entries(), Entries{"x"});
  EXPECT_EQ(content(), "x\n");
}

TEST_F(HistoryTest, ends_a_line_that_was_cut) {
  write("one\ntw");
  History(path()).add("three");
  EXPECT_EQ(content(), "one\ntw\nthree\n");
}

TEST_F(HistoryTest, reads_any_bytes) {
  write("a\x1b[31m\xff\n\n\\q\\\nlast");
  EXPECT_EQ(History(path()).entries(), (Entries{"a[31m\uFFFD", "q\\", "last"}));
}

TEST_F(HistoryTest, keeps_the_newest_when_it_is_long) {
  std::string text;
  for (std::size_t i = 0; i < 2 * History::kMaxEntries; ++i) text += std::to_string(i) + "\n";
  write(text);
  fs::permissions(path(), fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  History history(path());
  ASSERT_EQ(history.entries().size(), History::kMaxEntries);
  EXPECT_EQ(history.entries().front(), std::to_string(History::kMaxEntries));
  history.add("new");
  const History again(path());
  EXPECT_EQ(again.entries().size(), History::kMaxEntries + 1);
  EXPECT_EQ(again.entries().back(), "new");
  struct stat facts{};
  ASSERT_EQ(stat(path().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0640u);
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(path()).parent_path()), {}), 1);
}

// A program that has read the file before another shortened it still appends to the new one.
TEST_F(HistoryTest, appends_to_a_file_that_was_replaced) {
  History before(path());
  before.add("old");
  fs::rename(path(), path() + ".away");
  before.add("new");
  EXPECT_EQ(content(), "new\n");
}

TEST_F(HistoryTest, does_not_keep_very_long_entries_on_disk) {
  History history(path());
  history.add(std::string(History::kMaxEntryBytes + 1, 'x'));
  EXPECT_EQ(history.entries().size(), 1u);
  EXPECT_EQ(content(), "");
}

TEST_F(HistoryTest, says_why_nothing_is_kept) {
  fs::create_directories(path());
  History history(path());
  EXPECT_NE(history.problem().find(path()), std::string::npos);
  history.add("x");
  EXPECT_EQ(history.entries(), Entries{"x"});
}

TEST_F(HistoryTest, may_be_in_memory_only) {
  History history("");
  history.add("x");
  EXPECT_EQ(history.problem(), "");
  EXPECT_EQ(history.entries(), Entries{"x"});
}

}  // namespace
}  // namespace dunlin::terminal
