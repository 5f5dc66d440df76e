// The part of KvCacheManager that takes blocks out of tables where a policy compacts.
#include <algorithm>

#include "base/check.h"
#include "kv/kv_cache_manager.h"

namespace dunlin {

KvCompaction KvCacheManager::compaction_at(const KvSequence& seq, int num_tokens) const {
  if (num_tokens == seq.num_computed_) return {};
  return seq.policy_.compaction(num_tokens, seq.num_prompt_);
}

int KvCacheManager::num_shared_blocks(const KvSequence& seq, int num_first) const {
  int num_shared = 0;
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    const BlockTable& table = seq.tables_[g];
    for (int i = 0; windows_[g] == 0 && i < std::min(num_first, table.size()); ++i)
      num_shared += pool_.ref_cnt(table[i]) > 1;
  }
  return num_shared;
}

// The first blocks, before tokens are moved into them. What only the prefix cache shares is copied
// where there is a block to spare, and else leaves the cache.
void KvCacheManager::own_targets(KvSequence& seq, int num_blocks, bool has_spare) {
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    if (windows_[g] > 0) continue;
    BlockTable& table = seq.tables_[g];
    for (int i = 0; i < num_blocks; ++i) {
      if (!pool_.is_cached(table[i]) && pool_.ref_cnt(table[i]) == 1) continue;
      gave_back_early_ = true;
      if (pool_.ref_cnt(table[i]) > 1 || has_spare) {
        make_private(table, i);
        continue;
      }
      index_.remove_block(table[i]);
      pool_.unmark_cached(table[i]);
    }
  }
}

// The model has moved what stays out of the blocks that leave.
void KvCacheManager::compact(KvSequence& seq) {
  const auto [from, to, pool] = seq.policy_.compaction(seq.num_computed_, seq.num_prompt_);
  if (from == to) return;
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    if (windows_[g] > 0) continue;
    BlockTable& table = seq.tables_[g];
    for (int i = 0; i < to / kBlockSize; ++i)
      DUNLIN_CHECK(!is_shared(table[i]), "tokens were moved into a block that others read");
    for (int i = from / kBlockSize; i > to / kBlockSize; --i) pool_.release(table[i - 1]);
    table.erase(to / kBlockSize, from / kBlockSize);
  }
  seq.num_dropped_ += from - to;
  if (seq.num_computed_ >= seq.policy_.end_of_votes(seq.num_prompt_)) seq.votes_.clear();
}

}  // namespace dunlin
