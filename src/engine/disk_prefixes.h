// DiskPrefixes: where the disk tier meets a sequence. Saves blocks as they become full, and reads
// on where the prefix cache in memory ends: a block that is read takes the place of a chunk that is
// computed, slots, bytes, commit. Owned by the engine thread.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "engine/sequence.h"
#include "kv/disk_tier.h"
#include "kv/kv_cache_manager.h"
#include "kv/kv_storage.h"

namespace dunlin {

class DiskPrefixes {
 public:
  // Reading in one step, while others run, takes no longer than this and one block.
  static constexpr std::chrono::milliseconds kMaxReadTime{20};
  // A block that is read sooner is worth it whatever the model: one late read decides nothing.
  static constexpr double kSlowRead = 5e-3;

  // All outlive it.
  DiskPrefixes(DiskTier& tier, KvCacheManager& kv, KvStorage& storage,
               std::chrono::nanoseconds max_read_time = kMaxReadTime,
               double slow_read_s = kSlowRead);

  void begin_step() { read_until_ = {}; }
  // Before the commit of [num_computed_tokens, end): queues the blocks that this makes full.
  void save(Sequence& seq, int end);
  // Behind match_prefix: commits what follows on disk, whole blocks, leaving the last token to
  // compute. False: the time of this step is over and there is more; what was read stays cached.
  bool extend(Sequence& seq, bool others_run);

  // So long the model computed so many tokens of prompts: a disk that is slower isn't read.
  void note_prefill(int num_tokens, double seconds);

 private:
  const PrefixKey& key_of(Sequence& seq, int block_idx) const;
  bool is_worth_reading();
  bool read_block(Sequence& seq, int block_idx);

  DiskTier& tier_;
  KvCacheManager& kv_;
  KvStorage& storage_;
  const std::chrono::nanoseconds max_read_time_;
  const double slow_read_s_;
  std::vector<std::span<std::byte>> targets_;        // [num_groups] scratch
  std::vector<std::span<const std::byte>> sources_;  // [num_groups] scratch
  EngineClock::time_point read_until_;               // of this step; {}: nothing was read yet
  double read_s_ = 0;                                // of a block, running mean; 0: unknown
  double compute_s_ = 0;                             // of a block's tokens, likewise
};

}  // namespace dunlin
