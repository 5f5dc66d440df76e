// What must hold between the pool, the index and all sequences.
#include <algorithm>

#include "base/check.h"
#include "kv/kv_cache_manager.h"

namespace dunlin {

void KvCacheManager::check_integrity(std::span<const KvSequence* const> seqs) const {
  pool_.check_integrity();
  index_.check_integrity();
  std::vector<int> refs(static_cast<std::size_t>(num_blocks()), 0);
  for (const KvSequence* seq : seqs) {
    DUNLIN_CHECK(seq->num_hashed_blocks_ * kBlockSize <=
                     std::min(seq->num_computed_, seq->num_exact_tokens()),
                 "only computed tokens are hashed, and none that a policy changed");
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      const BlockTable& table = seq->tables_[g];
      DUNLIN_CHECK(table.num_dropped() == (windows_[g] == 0 ? seq->num_dropped_ : 0),
                   "layers of full attention drop the same tokens");
      DUNLIN_CHECK(table.size() >= table.size_for(seq->num_computed_), "a token has no slot");
      const int needed = first_needed_block(*seq, g, seq->num_computed_);
      for (int i = 0; i < table.size(); ++i) {
        if (table[i] == kNoBlock) {
          DUNLIN_CHECK(i < needed && i >= table.num_front(),
                       "a block that is still read was given back");
          continue;
        }
        ++refs[static_cast<std::size_t>(table[i])];
      }
    }
  }
  for (std::int32_t b = 0; b < num_blocks(); ++b) {
    DUNLIN_CHECK(refs[static_cast<std::size_t>(b)] == pool_.ref_cnt(b), "ref_cnt is wrong");
    DUNLIN_CHECK(pool_.is_cached(b) == (index_.owner(b).node != kNoNode),
                 "pool and index disagree on what is cached");
  }
  check_eviction_order();
}

// Behind a cached block of a full-attention group no descendant's block may wait for eviction.
void KvCacheManager::check_eviction_order() const {
  if (gave_back_early_) return;
  std::vector<bool> passed(static_cast<std::size_t>(num_blocks()), false);
  for (const std::int32_t block : pool_.free_list()) {
    passed[static_cast<std::size_t>(block)] = true;
    if (!pool_.is_cached(block)) continue;
    PrefixNode node = index_.parent(index_.owner(block).node);
    for (; !index_.is_root(node); node = index_.parent(node)) {
      for (int g = 0; g < num_groups(); ++g) {
        if (windows_[static_cast<std::size_t>(g)] > 0) continue;
        const std::int32_t above = index_.block(node, g);
        DUNLIN_CHECK(above != kNoBlock && !passed[static_cast<std::size_t>(above)],
                     "a prefix is evicted before what follows it");
      }
    }
  }
}

}  // namespace dunlin
