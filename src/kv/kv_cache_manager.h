// KvCacheManager: which blocks each sequence holds, over all KV groups. Integers only.
//
// The life of a sequence: match_prefix (once, while empty), then for each step allocate (slots for
// the step's tokens), the model's forward, and commit (the tokens are computed: full blocks enter
// the prefix index, blocks that slid out of a window are given back); finally free. Freed blocks
// that the index knows stay cached until their room is needed, least recently released first.
//
// A block that another sequence holds, or that the index knows, is never written: allocate()
// replaces it by a private copy first (copy-on-write) and queues a BlockCopy, which the owner must
// run on the storage, in order, before the forward.
//
// Two sequences that computed the same prefix end up holding the same blocks: commit() exchanges a
// duplicate for the cached one. So whoever holds a cached full-attention block also holds every
// block before it, releases it no later than those, and eviction takes the leaves of the tree
// first. (Equal tokens give equal bits: design.md, Determinism.)
//
// A sequence's policy (kv_policy.h) says which blocks of full-attention groups are given back, and
// up to where its blocks are those of full attention: only these enter the prefix index or come
// from it. Blocks that a policy gives back early may be evicted before those behind them. Where it
// compacts, commit() takes the blocks out whose tokens have left; the model has moved the others
// meanwhile. So allocate() makes the blocks that they are moved into the sequence's own, before the
// step that ends there.
//
// Owned by the engine thread. Lack of room is an ordinary answer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dunlin/types.h"
#include "kv/block_pool.h"
#include "kv/block_table.h"
#include "kv/cache_salt.h"
#include "kv/kv_layout.h"
#include "kv/kv_policy.h"
#include "kv/kv_votes.h"
#include "kv/prefix_index.h"

namespace dunlin {

// One sequence's part: a table for each group. Made by the manager's make_sequence or fork and
// given back with free() before it is destroyed.
class KvSequence {
 public:
  KvSequence() = default;
  KvSequence(KvSequence&&) = default;
  KvSequence& operator=(KvSequence&&) = default;

  const BlockTable& table(int group_idx) const {
    return tables_[static_cast<std::size_t>(group_idx)];
  }
  int num_computed_tokens() const { return num_computed_; }
  // Tokens that have left the slots of full attention.
  int num_dropped_tokens() const { return num_dropped_; }
  // Room for the votes of the step that was allocated, where its queries vote; kept by the model.
  KvVotes& votes() { return votes_; }
  int num_held_blocks() const;
  // Tokens from the first on whose blocks may be shared.
  int num_exact_tokens() const { return num_exact_; }

 private:
  friend class KvCacheManager;
  std::vector<BlockTable> tables_;  // [num_groups]
  int num_computed_ = 0;
  int num_dropped_ = 0;
  int num_prompt_ = 0;
  KvVotes votes_;
  int num_hashed_blocks_ = 0;  // blocks from the front that the index was told of
  CacheSalt salt_;
  KvPolicy policy_;
  int num_exact_ = 0;
  // Of the last hashed block, pinned; before the first one the root, or its child for the salt.
  PrefixNode last_node_ = kNoNode;
  bool wants_cache_ = false;      // the cache is on and was asked for
  bool hashing_ = false;          // false also where the index is full, or was reset meanwhile
  std::uint32_t num_resets_ = 0;  // the manager's when the sequence was empty
};

// What a reset of the prefix cache forgot, in blocks.
struct PrefixCacheReset {
  int num_dropped_blocks = 0;    // nobody held them; they are free now
  int num_forgotten_blocks = 0;  // sequences keep them, new ones don't find them
};

// Slots of held blocks that no query will read: of 16 in a block and group.
struct KvWaste {
  std::int64_t num_slots = 0;    // of all held blocks; a block that k sequences hold counts k times
  std::int64_t num_empty = 0;    // behind the last computed token
  std::int64_t num_expired = 0;  // before a window in its first block, or behind sinks in theirs
};

struct BlockCopy {
  std::int32_t from = kNoBlock;
  std::int32_t to = kNoBlock;
};

class KvCacheManager {
 public:
  KvCacheManager(const KvLayout& layout, int num_blocks, bool prefix_cache);

  // An empty sequence with room for tables of max_tokens, so that later calls don't allocate.
  // use_prefix_cache = false: neither matched nor remembered. Only sequences of one salt share
  // blocks through the cache.
  KvSequence make_sequence(int max_tokens, bool use_prefix_cache = true, const CacheSalt& salt = {},
                           const KvPolicy& policy = {}, int num_prompt_tokens = 0) const;

  // Takes the longest cached prefix of `tokens` that every group can serve, whole blocks, leaving
  // at least the last token to compute. Returns its length in tokens, now the sequence's
  // num_computed_tokens. The sequence must hold nothing.
  int match_prefix(KvSequence& seq, std::span<const TokenId> tokens);

  // Slots for the positions [num_computed_tokens, num_tokens), which end no later than the policy's
  // step_end(). False: no room, nothing changed.
  [[nodiscard]] bool allocate(KvSequence& seq, int num_tokens);
  // Free blocks that allocate(seq, num_tokens) would take.
  int num_new_blocks(const KvSequence& seq, int num_tokens) const;
  // The most that the sequence will take on its way to num_tokens, in steps of at most max_chunk.
  int num_new_blocks(const KvSequence& seq, int num_tokens, int max_chunk) const;

  // The tokens [0, num_tokens) are computed and final. `tokens` is the whole history, at least
  // num_tokens long. At a compaction of the policy it has been done.
  void commit(KvSequence& seq, std::span<const TokenId> tokens, int num_tokens);

  // A second sequence with the same past. Slots beyond num_computed_tokens stay with `seq`.
  KvSequence fork(const KvSequence& seq, int max_tokens);

  // Forgets the tokens from num_tokens on. Returns the length kept: num_tokens, or 0 where what a
  // continuation there would read has been given back already, or was voted on by tokens to forget
  // (the sequence is then empty and may match_prefix again).
  int truncate(KvSequence& seq, int num_tokens);

  // Gives everything back; the sequence is empty, as after make_sequence.
  void free(KvSequence& seq);

  // Forgets every prefix. Sequences keep what they hold, but nothing of it enters the index again
  // before they are freed.
  PrefixCacheReset reset_prefix_cache();

  // Whether what the sequence computes becomes known to the index.
  bool enters_cache(const KvSequence& seq) const {
    return seq.hashing_ && seq.num_resets_ == num_resets_;
  }

  // Adds the sequence's slots to `waste`. Behind a commit, a group of a sequence wastes less than a
  // block at its end, and where a window slides less than one more.
  void add_waste(const KvSequence& seq, KvWaste& waste) const;

  // Copies queued by allocate() since the last clear_copies().
  std::span<const BlockCopy> copies() const { return copies_; }
  void clear_copies() { copies_.clear(); }

  // Blocks that one sequence of num_tokens holds at most, computed in steps of at most max_chunk.
  int max_blocks_per_sequence(int num_tokens, int max_chunk, const KvPolicy& policy = {}) const;
  static int max_blocks_per_sequence(const KvLayout& layout, int num_tokens, int max_chunk,
                                     const KvPolicy& policy = {});
  // Blocks that a sequence of num_tokens holds between steps, num_prompt_tokens of them its prompt;
  // of a policy that gives blocks back the most.
  static std::int64_t held_blocks(const KvLayout& layout, int num_tokens, int num_prompt_tokens,
                                  const KvPolicy& policy);
  // The longest sequence, at most `limit` tokens, that so many blocks hold; 0: not one token's.
  static int longest_sequence(const KvLayout& layout, std::int64_t num_blocks, int limit,
                              int max_chunk);

  int num_groups() const { return static_cast<int>(windows_.size()); }
  bool has_prefix_cache() const { return prefix_cache_; }
  int num_blocks() const { return pool_.num_blocks(); }
  int num_free_blocks() const { return pool_.num_free(); }
  int num_cached_blocks() const { return pool_.num_cached(); }

  // Aborts where pool, index and the given sequences (all that exist) disagree.
  void check_integrity(std::span<const KvSequence* const> seqs) const;

 private:
  std::int32_t take_block();
  bool is_shared(std::int32_t block) const {
    return pool_.ref_cnt(block) > 1 || pool_.is_cached(block);
  }
  void make_private(BlockTable& table, int block_idx);
  KvCompaction compaction_at(const KvSequence& seq, int num_tokens) const;
  int num_shared_blocks(const KvSequence& seq, int num_first) const;
  void own_targets(KvSequence& seq, int num_blocks, bool has_spare);
  void compact(KvSequence& seq);
  bool enter_salt(KvSequence& seq);
  void hash_full_blocks(KvSequence& seq, std::span<const TokenId> tokens);
  void cache_block(KvSequence& seq, int group_idx, int block_idx, PrefixNode node);
  void release_slid_blocks(KvSequence& seq);
  int first_needed_block(const KvSequence& seq, std::size_t group_idx, int position) const;
  void drop_blocks(KvSequence& seq, int num_tokens);
  void move_pin(KvSequence& seq, PrefixNode node);
  void check_eviction_order() const;

  std::vector<int> windows_;  // [num_groups], 0 for full attention
  int num_full_layers_ = 0, num_kv_heads_ = 0;
  bool prefix_cache_;
  BlockPool pool_;
  PrefixIndex index_;
  std::uint32_t num_resets_ = 0;
  bool gave_back_early_ = false;  // a policy did, a cached block before those behind it
  std::vector<BlockCopy> copies_;
  std::vector<PrefixNode> path_;  // scratch of match_prefix
  std::vector<int> runs_;         // [num_groups] scratch of match_prefix
};

}  // namespace dunlin
