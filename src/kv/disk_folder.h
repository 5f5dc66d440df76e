// DiskFolder: the files of the disk tier and how they are named; no threads, no policy.
//
//   DIR/<identity>/lock                 held by the one process that writes there
//   DIR/<identity>/<2 digits>/<key>.kv  one block (kv/block_file.h)
//   DIR/<identity>/tmp-...              a file being written; renamed when it is whole
//
// Files and folders are for their owner only. Links are not followed, and nothing is touched whose
// name is no name of ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dunlin/status.h"
#include "kv/prefix_key.h"

namespace dunlin {

struct StoredBlock {
  std::string path;
  PrefixKey key{};
  bool is_own = false;  // of this folder's identity
  std::int64_t num_bytes = 0;
  std::int64_t used_ns = 0;  // when it was last written or read
};

class DiskFolder {
 public:
  // Makes what isn't there and tries to become the one that writes.
  static Result<DiskFolder> open(const std::string& dir, const PrefixKey& identity);
  ~DiskFolder();
  DiskFolder(DiskFolder&& other) noexcept;
  DiskFolder& operator=(DiskFolder&&) = delete;

  bool is_writer() const { return lock_ >= 0; }
  const std::string& path() const { return folder_; }

  bool contains(const PrefixKey& key) const;  // asks the system
  // Fills `file` and notes the use. kNotFound: there is none. kDataLoss: it has another size.
  Outcome read(const PrefixKey& key, std::span<std::byte> file) const;
  // The file appears whole or not at all. kResourceExhausted: the disk is full.
  Outcome write(const PrefixKey& key, std::span<const std::byte> file);
  void remove(const PrefixKey& key) const;

  // All blocks of all identities in DIR. Removes files that a process left half-written here.
  std::vector<StoredBlock> list() const;

 private:
  DiskFolder(std::string dir, const PrefixKey& identity, int lock);
  std::string path_of(const PrefixKey& key) const;

  std::string dir_;
  std::string folder_;
  int lock_;  // -1: another process holds it
  std::uint64_t num_temp_ = 0;
};

}  // namespace dunlin
