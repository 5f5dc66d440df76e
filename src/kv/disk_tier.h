// DiskTier: KV blocks kept in files, behind the prefix cache in memory. A map from PrefixKey to the
// raw bytes of one block of every KV group; whose they are and where they lie in the arena is the
// caller's. docs/design/09-prefix-cache-on-disk.md has the reasons.
//
// save() copies the bytes and returns; a thread of the tier writes. load() reads in the calling
// thread. Nothing that is on disk can do more than be useless: a file that is not exactly right is
// removed with a warning and counts as absent. Where files can't be written (a full disk, no
// permission), one warning is given and writing stops. Beyond max_bytes the least recently used
// files of DIR go, whatever model they are of. Of the processes that share DIR and an identity the
// first one writes, the others read.
//
// Thread-safe, but for load(): one thread at a time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <vector>

#include "dunlin/status.h"
#include "kv/block_file.h"
#include "kv/disk_folder.h"

namespace dunlin {

struct DiskTierConfig {
  std::string dir;  // made where it isn't there
  std::int64_t max_bytes = 0;
  PrefixKey identity{};            // what computes the bits; files of others are never read
  std::int64_t payload_bytes = 0;  // of one file: a block of every KV group
  std::int64_t max_queued_bytes = std::int64_t{64} << 20;  // waiting to be written
  std::function<void(const std::string& line)> warn;       // any thread
};

struct DiskTierStats {
  std::uint64_t num_written = 0, num_read = 0;  // blocks
  std::uint64_t num_dropped = 0;  // not written: the queue was full, or writing is off
  std::uint64_t num_bad = 0;      // files that were not right
  std::uint64_t num_evicted = 0;
  std::int64_t num_bytes = 0;  // of all files in DIR, as far as this process knows
};

class DiskTier {
 public:
  // kPermissionDenied or kNotFound: the folder can't be made or used. kInvalidArgument: max_bytes
  // holds next to nothing.
  static Result<std::unique_ptr<DiskTier>> open(DiskTierConfig config);
  ~DiskTier();  // writes what is queued

  const PrefixKey& identity() const { return config_.identity; }
  // Whether load() would look for it. Asks the system until the folder has been listed, soon after
  // the start, and where another process writes.
  bool contains(const PrefixKey& key) const;

  // Queues a block for writing, unless it is there or queued already. `blocks`: one a group,
  // together payload_bytes; copied.
  void save(const PrefixKey& key, const TokenId* tokens,
            std::span<const std::span<const std::byte>> blocks);
  // Fills `blocks`, as given to save(). False: not there, or not right; `blocks` are as they were.
  bool load(const PrefixKey& key, const TokenId* tokens,
            std::span<const std::span<std::byte>> blocks);

  // Forgets every file of this identity and what is queued; the thread removes the files.
  void clear();
  // Waits until the thread has nothing left to do, no longer than `timeout`; false where it has.
  bool flush(std::chrono::milliseconds timeout);
  DiskTierStats stats() const;

 private:
  struct KeyHash {
    std::size_t operator()(const PrefixKey& key) const;
  };
  using KeySet = std::unordered_set<PrefixKey, KeyHash>;
  struct Job {
    BlockFileId id;
    std::vector<std::byte> file;  // the payload, behind room for the header
  };

  DiskTier(DiskTierConfig config, DiskFolder folder);
  std::size_t file_size() const;
  std::size_t max_jobs() const;
  bool is_idle() const { return is_listed_ && jobs_.empty() && !is_working_ && !is_clearing_; }
  void run();
  void take_listing();
  void evict();
  void remove_own_files();
  void write(Job& job);
  void drop_bad_file(const PrefixKey& key, std::string_view why);

  const DiskTierConfig config_;
  DiskFolder folder_;  // written by the thread only

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  KeySet keys_;    // on disk
  KeySet queued_;  // in jobs_, or being written
  std::deque<Job> jobs_;
  std::vector<std::vector<std::byte>> spare_;  // buffers of written jobs
  DiskTierStats stats_;
  bool can_write_;
  bool is_listed_ = false;
  bool is_working_ = false;
  bool is_clearing_ = false;
  bool is_stopping_ = false;

  std::vector<std::byte> read_buffer_;  // of load()
  std::thread thread_;                  // last: everything else is there when it starts
};

}  // namespace dunlin
