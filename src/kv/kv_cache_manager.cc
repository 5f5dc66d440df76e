#include "kv/kv_cache_manager.h"

#include <algorithm>

#include "base/check.h"

namespace dunlin {
namespace {

// The first block that a query at `position` reads under `window`; 0 for full attention.
int first_window_block(int position, int window) {
  return window == 0 ? 0 : std::max(0, position - window + 1) / kBlockSize;
}

// Blocks that a window group holds at most: the window - 1 tokens before a step and the step's
// own, beginning anywhere in a block.
int max_window_blocks(int window, int max_chunk) {
  return (window - 1 + max_chunk + kBlockSize - 2) / kBlockSize + 1;
}

// And a group of `window`, or of full attention, for a sequence of num_tokens.
int max_group_blocks(int window, const KvPolicy& policy, int num_tokens, int max_chunk) {
  if (window == 0) return policy.max_blocks(num_tokens, max_chunk);
  return std::min(num_blocks_for(num_tokens), max_window_blocks(window, max_chunk));
}

std::vector<int> windows_of(const KvLayout& layout) {
  std::vector<int> windows;
  for (const KvGroup& group : layout.groups) windows.push_back(group.window);
  return windows;
}

}  // namespace

int KvSequence::num_held_blocks() const {
  int held = 0;
  for (const BlockTable& table : tables_) held += table.num_held();
  return held;
}

// With a full-attention group, a node without a block of that group is of no use, so there are no
// more than blocks. Twice as many leaves room for window-only models, whose inner nodes outlive
// their blocks.
KvCacheManager::KvCacheManager(const KvLayout& layout, int num_blocks, bool prefix_cache)
    : windows_(windows_of(layout)),
      num_full_layers_(layout.num_full_layers()),
      num_kv_heads_(layout.num_kv_heads),
      prefix_cache_(prefix_cache),
      pool_(num_blocks),
      index_(num_groups(), num_blocks, prefix_cache ? 2 * num_blocks : 0),
      runs_(windows_.size()) {
  DUNLIN_CHECK(!windows_.empty(), "a layout has at least one group");
  path_.reserve(static_cast<std::size_t>(num_blocks));
}

KvSequence KvCacheManager::make_sequence(int max_tokens, bool use_prefix_cache,
                                         const CacheSalt& salt, const KvPolicy& policy,
                                         int num_prompt_tokens) const {
  KvSequence seq;
  seq.tables_.resize(windows_.size());
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    seq.tables_[g].reserve(num_blocks_for(max_tokens));
    if (windows_[g] == 0) seq.tables_[g].keep_front(policy.num_sink_blocks());
  }
  seq.policy_ = policy;
  seq.num_prompt_ = num_prompt_tokens;
  seq.num_exact_ = policy.num_exact_tokens(num_prompt_tokens);
  seq.wants_cache_ = seq.hashing_ = prefix_cache_ && use_prefix_cache;
  seq.num_resets_ = num_resets_;
  seq.salt_ = salt;
  seq.last_node_ = PrefixIndex::root();
  return seq;
}

int KvCacheManager::match_prefix(KvSequence& seq, std::span<const TokenId> tokens) {
  DUNLIN_CHECK(seq.num_computed_ == 0 && seq.tables_[0].empty(), "only an empty sequence matches");
  seq.num_resets_ = num_resets_;
  if (!seq.hashing_ || tokens.empty()) return 0;
  const int max_hit =
      std::min(static_cast<int>(tokens.size() - 1), seq.num_exact_tokens()) / kBlockSize;
  path_.clear();
  std::fill(runs_.begin(), runs_.end(), 0);
  int hit = 0;
  PrefixNode node = PrefixIndex::root();
  if (!seq.salt_.is_none()) node = index_.find_child(node, seq.salt_.block());
  for (int i = 0; i < max_hit && node != kNoNode; ++i) {
    node = index_.find_child(node, tokens.data() + i * kBlockSize);
    if (node == kNoNode) break;
    path_.push_back(node);
    bool usable = true;
    bool has_full_blocks = true;
    for (std::size_t g = 0; g < windows_.size(); ++g) {
      runs_[g] = index_.block(node, static_cast<int>(g)) == kNoBlock ? 0 : runs_[g] + 1;
      const int length = i + 1;
      const int needed = length - first_window_block(length * kBlockSize, windows_[g]);
      usable = usable && runs_[g] >= needed;
      has_full_blocks = has_full_blocks && (windows_[g] > 0 || runs_[g] == length);
    }
    if (usable) hit = i + 1;
    if (!has_full_blocks) break;
  }
  if (hit == 0) return 0;
  for (int g = 0; g < num_groups(); ++g) {
    BlockTable& table = seq.tables_[static_cast<std::size_t>(g)];
    const int first = first_window_block(hit * kBlockSize, windows_[static_cast<std::size_t>(g)]);
    for (int i = 0; i < hit; ++i) {
      if (i < first) {
        table.append_gap();
        continue;
      }
      const std::int32_t block = index_.block(path_[static_cast<std::size_t>(i)], g);
      pool_.add_ref(block);
      table.append(block);
    }
  }
  seq.num_computed_ = hit * kBlockSize;
  seq.num_hashed_blocks_ = hit;
  move_pin(seq, path_[static_cast<std::size_t>(hit) - 1]);
  release_slid_blocks(seq);  // what the next token doesn't see under the sequence's policy
  return seq.num_computed_;
}

int KvCacheManager::num_new_blocks(const KvSequence& seq, int num_tokens) const {
  int needed = num_shared_blocks(seq, compaction_at(seq, num_tokens).to / kBlockSize);
  for (const BlockTable& table : seq.tables_) {
    needed += std::max(0, table.size_for(num_tokens) - table.size());
    const int write_idx = table.entry_of(seq.num_computed_);
    if (num_tokens > seq.num_computed_ && write_idx < table.size())
      needed += table[write_idx] != kNoBlock && is_shared(table[write_idx]);
  }
  return needed;
}

int KvCacheManager::num_new_blocks(const KvSequence& seq, int num_tokens, int max_chunk) const {
  int needed = num_shared_blocks(seq, seq.policy_.num_targets(seq.num_prompt_) / kBlockSize);
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    const BlockTable& table = seq.tables_[g];
    int growth = std::max(0, table.size_for(num_tokens) - table.size());
    const int most = max_group_blocks(windows_[g], seq.policy_, num_tokens, max_chunk);
    needed += std::min(growth, std::max(0, most - table.num_held()));
  }
  return needed;
}

bool KvCacheManager::allocate(KvSequence& seq, int num_tokens) {
  const KvPolicy& policy = seq.policy_;
  DUNLIN_CHECK(num_tokens >= seq.num_computed_, "computed tokens have their slots already");
  DUNLIN_CHECK(num_tokens <= policy.step_end(seq.num_computed_, seq.num_prompt_),
               "a step ends where its policy compacts");
  const int needed = num_new_blocks(seq, num_tokens);
  if (needed > pool_.num_free()) return false;
  const bool has_spare = needed < pool_.num_free();
  for (BlockTable& table : seq.tables_) {
    const int write_idx = table.entry_of(seq.num_computed_);
    if (num_tokens > seq.num_computed_ && write_idx < table.size()) make_private(table, write_idx);
    while (table.size() < table.size_for(num_tokens)) table.append(take_block());
  }
  const KvCompaction compaction = compaction_at(seq, num_tokens);
  if (!compaction.is_none()) own_targets(seq, compaction.to / kBlockSize, has_spare);
  if (seq.votes_.is_empty() && num_tokens > policy.first_vote(seq.num_prompt_) &&
      num_tokens <= policy.end_of_votes(seq.num_prompt_))
    seq.votes_.reset(num_full_layers_, num_kv_heads_, policy.max_voted_slots(seq.num_prompt_));
  return true;
}

void KvCacheManager::make_private(BlockTable& table, int block_idx) {
  const std::int32_t shared = table[block_idx];
  if (shared == kNoBlock || !is_shared(shared)) return;
  const std::int32_t copy = take_block();
  copies_.push_back({shared, copy});
  table.replace(block_idx, copy);
  pool_.release(shared);
}

std::int32_t KvCacheManager::take_block() {
  const BlockPool::Taken taken = pool_.allocate();
  DUNLIN_CHECK(taken.block != kNoBlock, "the caller counted the free blocks");
  if (taken.was_cached) index_.remove_block(taken.block);
  return taken.block;
}

void KvCacheManager::commit(KvSequence& seq, std::span<const TokenId> tokens, int num_tokens) {
  DUNLIN_CHECK(num_tokens >= seq.num_computed_ &&
                   static_cast<std::size_t>(num_tokens) <= tokens.size() &&
                   seq.tables_[0].size_for(num_tokens) <= seq.tables_[0].size(),
               "committed tokens exist and have slots");
  const bool is_new = num_tokens > seq.num_computed_;
  seq.num_computed_ = num_tokens;
  hash_full_blocks(seq, tokens);
  release_slid_blocks(seq);
  if (is_new) compact(seq);
}

// Before its first block a salted sequence steps from the root to its salt's node. False: no room.
bool KvCacheManager::enter_salt(KvSequence& seq) {
  if (seq.salt_.is_none() || seq.last_node_ != PrefixIndex::root()) return true;
  const PrefixNode node = index_.find_or_add_child(PrefixIndex::root(), seq.salt_.block());
  if (node == kNoNode) return false;
  move_pin(seq, node);
  return true;
}

void KvCacheManager::hash_full_blocks(KvSequence& seq, std::span<const TokenId> tokens) {
  if (seq.num_resets_ != num_resets_) seq.hashing_ = false;
  const int end = std::min(seq.num_computed_, seq.num_exact_tokens()) / kBlockSize;
  while (seq.hashing_ && seq.num_hashed_blocks_ < end) {
    const int block_idx = seq.num_hashed_blocks_;
    PrefixNode node = kNoNode;
    if (enter_salt(seq))
      node = index_.find_or_add_child(seq.last_node_, tokens.data() + block_idx * kBlockSize);
    if (node == kNoNode) {
      seq.hashing_ = false;
      return;
    }
    for (int g = 0; g < num_groups(); ++g) cache_block(seq, g, block_idx, node);
    ++seq.num_hashed_blocks_;
    move_pin(seq, node);
  }
}

void KvCacheManager::cache_block(KvSequence& seq, int group_idx, int block_idx, PrefixNode node) {
  BlockTable& table = seq.tables_[static_cast<std::size_t>(group_idx)];
  const std::int32_t own = table[block_idx];
  if (own == kNoBlock) return;
  const std::int32_t known = index_.block(node, group_idx);
  if (known == own) return;
  if (known != kNoBlock) {
    pool_.add_ref(known);
    table.replace(block_idx, known);
    pool_.release(own);
  } else if (!pool_.is_cached(own)) {
    index_.set_block(node, group_idx, own);
    pool_.mark_cached(own);
  }
}

// Of those that are not kept at the front anyway.
int KvCacheManager::first_needed_block(const KvSequence& seq, std::size_t group_idx,
                                       int position) const {
  return windows_[group_idx] > 0 ? first_window_block(position, windows_[group_idx])
                                 : seq.policy_.first_kept(position) / kBlockSize;
}

void KvCacheManager::release_slid_blocks(KvSequence& seq) {
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    BlockTable& table = seq.tables_[g];
    const int first = std::min(first_needed_block(seq, g, seq.num_computed_), table.size());
    while (table.first_kept() < first) {
      const std::int32_t block = table.drop_first();
      if (block == kNoBlock) continue;
      gave_back_early_ = gave_back_early_ || (windows_[g] == 0 && pool_.is_cached(block));
      pool_.release(block);
    }
  }
}

KvSequence KvCacheManager::fork(const KvSequence& seq, int max_tokens) {
  KvSequence child = make_sequence(max_tokens, false, seq.salt_, seq.policy_, seq.num_prompt_);
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    const int size = seq.tables_[g].size_for(seq.num_computed_);
    child.tables_[g].set_dropped(seq.tables_[g].num_dropped());
    for (int i = 0; i < size; ++i) {
      const std::int32_t block = seq.tables_[g][i];
      if (block == kNoBlock) {
        child.tables_[g].append_gap();
      } else {
        pool_.add_ref(block);
        child.tables_[g].append(block);
      }
    }
  }
  child.num_dropped_ = seq.num_dropped_;
  child.votes_ = seq.votes_;
  child.num_computed_ = seq.num_computed_;
  child.num_hashed_blocks_ = seq.num_hashed_blocks_;
  child.wants_cache_ = seq.wants_cache_;
  child.hashing_ = seq.hashing_;
  child.num_resets_ = seq.num_resets_;
  move_pin(child, seq.last_node_);
  return child;
}

int KvCacheManager::truncate(KvSequence& seq, int num_tokens) {
  DUNLIN_CHECK(num_tokens >= 0 && num_tokens <= seq.num_computed_,
               "truncate keeps computed tokens only");
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    const BlockTable& table = seq.tables_[g];
    if (table.has_gap() && table.first_kept() > first_needed_block(seq, g, num_tokens))
      num_tokens = 0;
  }
  const bool forgets_votes = !seq.votes_.is_empty() && num_tokens < seq.num_computed_;
  const int dropped = num_tokens - seq.policy_.num_slots(num_tokens, seq.num_prompt_);
  if (forgets_votes || dropped != seq.num_dropped_) num_tokens = 0;
  if (num_tokens == 0) {
    free(seq);
    return 0;
  }
  drop_blocks(seq, num_tokens);
  PrefixNode node = seq.last_node_;
  while (seq.num_hashed_blocks_ > num_tokens / kBlockSize) {
    --seq.num_hashed_blocks_;
    node = index_.parent(node);
  }
  move_pin(seq, node);
  seq.num_computed_ = num_tokens;
  return num_tokens;
}

// Last first, so that the cached ones are evicted from the end of the prefix.
void KvCacheManager::drop_blocks(KvSequence& seq, int num_tokens) {
  int longest = 0;
  for (const BlockTable& table : seq.tables_) longest = std::max(longest, table.size());
  for (int i = longest; i > 0; --i) {
    for (BlockTable& table : seq.tables_) {
      if (table.size() < i || i <= std::max(0, table.size_for(num_tokens))) continue;
      const std::int32_t block = table.drop_last();
      if (block != kNoBlock) pool_.release(block);
    }
  }
}

void KvCacheManager::free(KvSequence& seq) {
  if (seq.tables_.empty()) return;
  drop_blocks(seq, 0);
  move_pin(seq, PrefixIndex::root());
  seq.votes_.clear();
  seq.num_computed_ = 0;
  seq.num_dropped_ = 0;
  seq.num_hashed_blocks_ = 0;
  seq.hashing_ = seq.wants_cache_;
  seq.num_resets_ = num_resets_;
}

void KvCacheManager::add_waste(const KvSequence& seq, KvWaste& waste) const {
  for (std::size_t g = 0; g < windows_.size(); ++g) {
    const BlockTable& table = seq.tables_[g];
    waste.num_slots += std::int64_t{table.num_held()} * kBlockSize;
    waste.num_empty +=
        std::int64_t{table.size()} * kBlockSize - (seq.num_computed_ - table.num_dropped());
    if (table.has_gap() && windows_[g] == 0)
      waste.num_expired += table.num_front() * kBlockSize - seq.policy_.sinks;
    if (windows_[g] == 0 || table.num_held() == 0) continue;
    // What the next query, at num_computed, no longer sees.
    const int first_seen = std::max(0, seq.num_computed_ - windows_[g] + 1);
    waste.num_expired += std::max(0, first_seen - table.first_kept() * kBlockSize);
  }
}

PrefixCacheReset KvCacheManager::reset_prefix_cache() {
  PrefixCacheReset reset;
  for (std::int32_t block = 0; block < num_blocks(); ++block) {
    if (!pool_.is_cached(block)) continue;
    ++(pool_.ref_cnt(block) > 0 ? reset.num_forgotten_blocks : reset.num_dropped_blocks);
    index_.remove_block(block);
    pool_.unmark_cached(block);
  }
  ++num_resets_;
  return reset;
}

void KvCacheManager::move_pin(KvSequence& seq, PrefixNode node) {
  if (node == seq.last_node_) return;
  if (node != PrefixIndex::root()) index_.pin(node);
  if (seq.last_node_ != PrefixIndex::root()) index_.unpin(seq.last_node_);
  seq.last_node_ = node;
}

int KvCacheManager::max_blocks_per_sequence(const KvLayout& layout, int num_tokens, int max_chunk,
                                            const KvPolicy& policy) {
  int most = 0;
  for (const KvGroup& group : layout.groups)
    most += max_group_blocks(group.window, policy, num_tokens, max_chunk);
  return most;
}

std::int64_t KvCacheManager::held_blocks(const KvLayout& layout, int num_tokens,
                                         int num_prompt_tokens, const KvPolicy& policy) {
  if (policy.gives_back()) return max_blocks_per_sequence(layout, num_tokens, 1, policy);
  // Layers with a window of their own drop nothing by votes.
  const int dropped = num_tokens - policy.num_slots(num_tokens, num_prompt_tokens);
  const int num_full_groups = layout.num_full_layers() / layout.layers_per_block;
  return layout.blocks_for(num_tokens) - std::int64_t{num_full_groups} * dropped / kBlockSize;
}

int KvCacheManager::longest_sequence(const KvLayout& layout, std::int64_t num_blocks, int limit,
                                     int max_chunk) {
  int fits = 0, fails = limit + 1;
  while (fails - fits > 1) {
    const int middle = fits + (fails - fits) / 2;
    (max_blocks_per_sequence(layout, middle, max_chunk) <= num_blocks ? fits : fails) = middle;
  }
  return fits;
}

int KvCacheManager::max_blocks_per_sequence(int num_tokens, int max_chunk,
                                            const KvPolicy& policy) const {
  int most = 0;
  for (const int window : windows_) most += max_group_blocks(window, policy, num_tokens, max_chunk);
  return most;
}

}  // namespace dunlin
