#include "terminal/history.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/write_all.h"
#include "terminal/printable.h"

namespace dunlin::terminal {
namespace {

constexpr off_t kMaxFileBytes = 16 << 20;  // only the end of a longer file is read

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

// One line an entry: line feeds as \n, backslashes doubled.
std::string to_line(std::string_view entry) {
  std::string line;
  for (const char c : entry) {
    if (c == '\\') line += "\\\\";
    if (c == '\n') line += "\\n";
    if (c != '\\' && c != '\n') line += c;
  }
  return line + "\n";
}

std::string from_line(std::string_view line) {
  std::string entry;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size()) {
      ++i;
      entry += line[i] == 'n' ? '\n' : line[i];
    } else {
      entry += line[i];
    }
  }
  return typed_text(entry);
}

std::string read_end(int fd) {
  struct stat facts{};
  if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) return "";
  const off_t begin = std::max<off_t>(facts.st_size - kMaxFileBytes, 0);
  std::string text(static_cast<std::size_t>(facts.st_size - begin), '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t n =
        pread(fd, text.data() + size, text.size() - size, begin + static_cast<off_t>(size));
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
  }
  text.resize(size);
  if (begin > 0) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
  return text;
}

// The file, locked; or -1 with errno. Another program may replace the file between open and lock.
int open_locked(const std::string& path) {
  while (true) {
    const int fd = open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    if (fd < 0) return -1;
    struct stat mine{}, named{};
    if (flock(fd, LOCK_EX) != 0 || fstat(fd, &mine) != 0) return fd;  // a disk without locks
    if (stat(path.c_str(), &named) == 0 && mine.st_ino == named.st_ino &&
        mine.st_dev == named.st_dev)
      return fd;
    close(fd);
  }
}

}  // namespace

History::History(std::string path) : path_(std::move(path)) {
  if (!path_.empty()) load();
}

void History::fail(const char* what) {
  problem_ =
      fmt::format("the history is not kept: can't {} {}: {}", what, path_, std::strerror(errno));
}

void History::load() {
  std::error_code ignored;
  const auto folder = std::filesystem::path(path_).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  const File file(open_locked(path_));
  if (file.fd() < 0) {
    fail("open");
    return;
  }
  const std::string text = read_end(file.fd());
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin)
      entries_.push_back(from_line(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  if (entries_.size() < 2 * kMaxEntries) return;
  entries_.erase(entries_.begin(), entries_.end() - static_cast<std::ptrdiff_t>(kMaxEntries));
  shorten(file.fd());
}

// The new file has the old one's mode. A symbolic link stays: what it names is replaced.
void History::shorten(int fd) {
  std::error_code error;
  const std::string target = std::filesystem::canonical(path_, error).string();
  if (error) return;
  struct stat facts{};
  if (fstat(fd, &facts) != 0) return;
  std::string text;
  for (const std::string& entry : entries_) text += to_line(entry);
  const std::string temporary = fmt::format("{}.{}", target, getpid());
  const File file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.fd() < 0) return;  // the long file goes on
  const bool whole = fchmod(file.fd(), facts.st_mode & 0777) == 0 && write_all(file.fd(), text) &&
                     fsync(file.fd()) == 0;
  if (!whole || rename(temporary.c_str(), target.c_str()) != 0) unlink(temporary.c_str());
}

void History::add(const std::string& entry) {
  if (!entries_.empty() && entries_.back() == entry) return;
  entries_.push_back(entry);
  if (entries_.size() > 2 * kMaxEntries)
    entries_.erase(entries_.begin(), entries_.end() - static_cast<std::ptrdiff_t>(kMaxEntries));
  if (!path_.empty() && problem_.empty() && entry.size() <= kMaxEntryBytes) append(entry);
}

void History::append(const std::string& entry) {
  const File file(open_locked(path_));
  if (file.fd() < 0) {
    fail("open");
    return;
  }
  std::string line = to_line(entry);
  struct stat facts{};
  char last = '\n';
  if (fstat(file.fd(), &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0 &&
      pread(file.fd(), &last, 1, facts.st_size - 1) == 1 && last != '\n')
    line.insert(line.begin(), '\n');  // a write was cut: its line ends here
  if (!write_all(file.fd(), line)) fail("write");
}

}  // namespace dunlin::terminal
