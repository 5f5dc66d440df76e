// A file mapped read-only into memory. Owns the descriptor and the map; move-only. Reading the
// bytes is thread-safe.
//
// Another process may shorten the file while it is in use; the kernel then answers a read past
// the new end with SIGBUS. check_unchanged() finds that before a read, and
// install_mapped_file_fault_handler() makes the signal end the program with one clear line.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "dunlin/status.h"

namespace dunlin {

class MappedFile {
 public:
  // kNotFound, kPermissionDenied, or kInvalidArgument where `path` is not a regular file. An
  // empty file gives an empty map.
  static Result<MappedFile> open(const std::string& path);

  ~MappedFile();
  MappedFile(MappedFile&&) noexcept;
  MappedFile& operator=(MappedFile&&) noexcept;

  const std::string& path() const;
  std::span<const std::byte> bytes() const;
  std::string_view text() const;  // the same bytes

  // kDataLoss where the file on disk is no longer as long as it was when it was mapped.
  Outcome check_unchanged() const;

  // The range [offset, offset + size) won't be read soon: drops the whole pages inside it from
  // this process. A later read brings them back.
  void drop_pages(std::size_t offset, std::size_t size) const;

 private:
  struct Map;
  explicit MappedFile(std::unique_ptr<Map> map);
  std::unique_ptr<Map> map_;
};

// From now on a SIGBUS inside a live map prints "dunlin: PATH: ..." to stderr and ends the process
// with exit status 1; any other SIGBUS is what it was before. For cli/, once, at the start.
void install_mapped_file_fault_handler();

}  // namespace dunlin
