#include "kv/disk_folder.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/write_all.h"

namespace dunlin {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".kv";
constexpr std::string_view kTemp = "tmp-";

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  // close() may be the first to tell that the bytes have no room.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

Status system_error(const std::string& path) {
  const int error = errno;
  StatusCode code = StatusCode::kInternal;
  if (error == ENOENT || error == ENOTDIR) code = StatusCode::kNotFound;
  if (error == EACCES || error == EPERM || error == EROFS) code = StatusCode::kPermissionDenied;
  if (error == ENOSPC || error == EDQUOT) code = StatusCode::kResourceExhausted;
  return {code, fmt::format("{}: {}", path, std::strerror(error))};
}

// A folder for its owner, made where it isn't there.
Outcome make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return tl::unexpected(system_error(path));
}

bool read_whole(int fd, std::span<std::byte> out) {
  for (std::size_t done = 0; done < out.size();) {
    const ssize_t size = ::read(fd, out.data() + done, out.size() - done);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    done += static_cast<std::size_t>(size);
  }
  return true;
}

// The entries of a folder, none where it can't be read.
template <typename Fn>
void for_each_entry(const fs::path& folder, const Fn& fn) {
  std::error_code error;
  fs::directory_iterator it(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) fn(*it);
}

bool is_real_folder(const fs::directory_entry& entry) {
  std::error_code error;
  return entry.symlink_status(error).type() == fs::file_type::directory;
}

void add_block(const fs::directory_entry& entry, bool is_own, std::vector<StoredBlock>& out) {
  const std::string name = entry.path().filename().string();
  StoredBlock block;
  if (!name.ends_with(kSuffix) ||
      !parse_hex(std::string_view(name).substr(0, name.size() - kSuffix.size()), block.key))
    return;
  struct stat info{};
  block.path = entry.path().string();
  if (::lstat(block.path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  block.is_own = is_own;
  block.num_bytes = info.st_size;
  block.used_ns = std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  out.push_back(std::move(block));
}

}  // namespace

Result<DiskFolder> DiskFolder::open(const std::string& dir, const PrefixKey& identity) {
  std::error_code error;
  fs::create_directories(fs::path(dir).parent_path(), error);  // mkdir tells what is wrong
  DUNLIN_TRY(make_folder(dir));
  const std::string folder = dir + "/" + to_hex(identity);
  DUNLIN_TRY(make_folder(folder));
  const std::string lock_path = folder + "/lock";
  const int lock = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) return tl::unexpected(system_error(lock_path));
  if (::flock(lock, LOCK_EX | LOCK_NB) == 0) return DiskFolder(dir, identity, lock);
  ::close(lock);
  return DiskFolder(dir, identity, -1);
}

DiskFolder::DiskFolder(std::string dir, const PrefixKey& identity, int lock)
    : dir_(std::move(dir)), folder_(dir_ + "/" + to_hex(identity)), lock_(lock) {}

DiskFolder::DiskFolder(DiskFolder&& other) noexcept
    : dir_(std::move(other.dir_)),
      folder_(std::move(other.folder_)),
      lock_(std::exchange(other.lock_, -1)),
      num_temp_(other.num_temp_) {}

DiskFolder::~DiskFolder() {
  if (lock_ >= 0) ::close(lock_);  // the lock goes with it
}

std::string DiskFolder::path_of(const PrefixKey& key) const {
  const std::string name = to_hex(key);
  return fmt::format("{}/{}/{}{}", folder_, name.substr(0, 2), name, kSuffix);
}

bool DiskFolder::contains(const PrefixKey& key) const {
  return ::access(path_of(key).c_str(), R_OK) == 0;
}

Outcome DiskFolder::read(const PrefixKey& key, std::span<std::byte> file) const {
  const std::string path = path_of(key);
  // A FIFO of that name must not make us wait.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info{};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) return tl::unexpected(system_error(path));
  if (!S_ISREG(info.st_mode) || info.st_size != static_cast<std::int64_t>(file.size())) {
    return fail(StatusCode::kDataLoss,
                fmt::format("it has {} bytes, not {}", std::int64_t{info.st_size}, file.size()));
  }
  if (!read_whole(fd.get(), file)) return fail(StatusCode::kDataLoss, "it can't be read whole");
  ::futimens(fd.get(), nullptr);  // now
  return {};
}

Outcome DiskFolder::write(const PrefixKey& key, std::span<const std::byte> file) {
  const std::string path = path_of(key);
  const std::string temp = fmt::format("{}/{}{}-{}", folder_, kTemp, ::getpid(), ++num_temp_);
  Descriptor fd(::open(temp.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (fd.get() < 0) return tl::unexpected(system_error(temp));
  const auto undo = [&] {
    Status status = system_error(temp);
    ::unlink(temp.c_str());
    return tl::unexpected(std::move(status));
  };
  if (!write_all(fd.get(), {reinterpret_cast<const char*>(file.data()), file.size()}))
    return undo();
  if (!fd.close()) return undo();
  if (::rename(temp.c_str(), path.c_str()) == 0) return {};
  if (errno != ENOENT) return undo();
  DUNLIN_TRY(make_folder(folder_));
  DUNLIN_TRY(make_folder(fs::path(path).parent_path().string()));
  if (::rename(temp.c_str(), path.c_str()) != 0) return undo();
  return {};
}

void DiskFolder::remove(const PrefixKey& key) const { ::unlink(path_of(key).c_str()); }

std::vector<StoredBlock> DiskFolder::list() const {
  std::vector<StoredBlock> blocks;
  for_each_entry(dir_, [&](const fs::directory_entry& identity) {
    PrefixKey ignored;
    if (!parse_hex(identity.path().filename().string(), ignored) || !is_real_folder(identity))
      return;
    const bool is_own = identity.path().filename() == fs::path(folder_).filename();
    for_each_entry(identity.path(), [&](const fs::directory_entry& entry) {
      if (is_own && is_writer() && entry.path().filename().string().starts_with(kTemp)) {
        ::unlink(entry.path().c_str());
      } else if (is_real_folder(entry)) {
        for_each_entry(entry.path(),
                       [&](const fs::directory_entry& file) { add_block(file, is_own, blocks); });
      }
    });
  });
  return blocks;
}

}  // namespace dunlin
