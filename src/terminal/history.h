// What was typed before, oldest first: in memory, and in a file where one is named. Each entry is
// appended as it comes, by one write under a lock, so that several programs can share the file and
// nothing is lost when one ends badly. The file is made with mode 0600. Once it holds twice
// kMaxEntries it is replaced, whole or not at all, by the last kMaxEntries.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dunlin::terminal {

class History {
 public:
  static constexpr std::size_t kMaxEntries = 1000;
  static constexpr std::size_t kMaxEntryBytes = 64 << 10;  // longer ones are not kept in the file

  // "" keeps nothing on disk. Missing folders are made.
  explicit History(std::string path);

  const std::vector<std::string>& entries() const { return entries_; }
  // An entry equal to the last one adds nothing.
  void add(const std::string& entry);

  // Why entries don't reach the disk, for the user; "" where they do.
  const std::string& problem() const { return problem_; }

 private:
  void load();
  void append(const std::string& entry);
  void shorten(int fd);
  void fail(const char* what);

  std::string path_;
  std::vector<std::string> entries_;
  std::string problem_;
};

}  // namespace dunlin::terminal
