#include "base/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/write_all.h"

namespace dunlin {
namespace {

// What the signal handler may read: a handler gets no argument of ours, so this is the one place
// that has to be global. Slots are taken and given back without a lock; a file that finds no free
// slot is still mapped, and its fault has no name.
struct FaultSlot {
  std::atomic<bool> taken{false};
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
  std::atomic<const char*> path{nullptr};
};
constexpr int kFaultSlots = 256;
constinit std::array<FaultSlot, kFaultSlots> fault_slots;

FaultSlot* take_fault_slot(const void* data, std::size_t size, const char* path) {
  for (FaultSlot& slot : fault_slots) {
    if (slot.taken.exchange(true)) continue;
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    slot.path.store(path);
    slot.begin.store(begin);
    slot.end.store(begin + size);
    return &slot;
  }
  return nullptr;
}

void give_back_fault_slot(FaultSlot* slot) {
  if (slot == nullptr) return;
  slot->end.store(0);
  slot->begin.store(0);
  slot->path.store(nullptr);
  slot->taken.store(false);
}

void on_sigbus(int signal_number, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const FaultSlot& slot : fault_slots) {
    if (info->si_code != BUS_ADRERR) break;
    if (address < slot.begin.load() || address >= slot.end.load()) continue;
    const char* path = slot.path.load();
    write_all(STDERR_FILENO, "dunlin: ");
    write_all(STDERR_FILENO, path != nullptr ? path : "a mapped file");
    write_all(
        STDERR_FILENO,
        ": cannot be read any more: it was shortened or its disk failed while in use; restore the "
        "file and start again\n");
    _exit(1);
  }
  // Not ours: with the default action back in place, the same instruction faults again.
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal_number, &action, nullptr);
}

StatusCode code_of_errno(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR: return StatusCode::kNotFound;
    case EACCES:
    case EPERM: return StatusCode::kPermissionDenied;
    case EMFILE:
    case ENFILE:
    case ENOMEM: return StatusCode::kResourceExhausted;
    default: return StatusCode::kInvalidArgument;
  }
}

tl::unexpected<Status> fail_with_errno(const std::string& path, std::string_view what) {
  const int error = errno;
  return fail(code_of_errno(error),
              fmt::format("{}: {}: {}", path, what, std::generic_category().message(error)));
}

}  // namespace

struct MappedFile::Map {
  std::string path;
  int fd = -1;
  const std::byte* data = nullptr;
  std::size_t size = 0;
  FaultSlot* slot = nullptr;

  ~Map() {
    give_back_fault_slot(slot);
    if (data != nullptr) munmap(const_cast<std::byte*>(data), size);
    if (fd >= 0) close(fd);
  }
};

MappedFile::MappedFile(std::unique_ptr<Map> map) : map_(std::move(map)) {}
MappedFile::~MappedFile() = default;
MappedFile::MappedFile(MappedFile&&) noexcept = default;
MappedFile& MappedFile::operator=(MappedFile&&) noexcept = default;

Result<MappedFile> MappedFile::open(const std::string& path) {
  auto map = std::make_unique<Map>();
  map->path = path;
  // O_NONBLOCK: opening a FIFO by mistake must not wait for a writer.
  map->fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (map->fd < 0) return fail_with_errno(path, "cannot open");
  struct stat info = {};
  if (fstat(map->fd, &info) != 0) return fail_with_errno(path, "cannot read its size");
  if (S_ISDIR(info.st_mode)) return invalid(path + ": is a directory, not a file");
  if (!S_ISREG(info.st_mode)) return invalid(path + ": is not a regular file");
  map->size = static_cast<std::size_t>(info.st_size);
  if (map->size > 0) {
    void* data = mmap(nullptr, map->size, PROT_READ, MAP_PRIVATE, map->fd, 0);
    if (data == MAP_FAILED) return fail_with_errno(path, "cannot map into memory");
    map->data = static_cast<const std::byte*>(data);
    map->slot = take_fault_slot(data, map->size, map->path.c_str());
  }
  return MappedFile(std::move(map));
}

const std::string& MappedFile::path() const { return map_->path; }

std::span<const std::byte> MappedFile::bytes() const { return {map_->data, map_->size}; }
std::string_view MappedFile::text() const {
  return {reinterpret_cast<const char*>(map_->data), map_->size};
}

Outcome MappedFile::check_unchanged() const {
  struct stat info = {};
  if (fstat(map_->fd, &info) != 0) return fail_with_errno(map_->path, "cannot read its size");
  if (static_cast<std::size_t>(info.st_size) != map_->size) {
    return fail(StatusCode::kDataLoss,
                fmt::format("{}: was {} bytes long when it was opened and is {} now; restore the "
                            "file and start again",
                            map_->path, map_->size, info.st_size));
  }
  return {};
}

void MappedFile::drop_pages(std::size_t offset, std::size_t size) const {
  if (offset >= map_->size) return;
  size = std::min(size, map_->size - offset);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t begin = (offset + page - 1) / page * page;
  const std::size_t end = (offset + size) / page * page;
  if (begin >= end) return;
  madvise(const_cast<std::byte*>(map_->data) + begin, end - begin, MADV_DONTNEED);
}

void install_mapped_file_fault_handler() {
  struct sigaction action = {};
  action.sa_sigaction = on_sigbus;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace dunlin
