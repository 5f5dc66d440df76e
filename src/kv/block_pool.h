// BlockPool: who holds each block of the KV arena. Integers only; the bytes are KvStorage's.
//
// A block is in one of three states:
//   held      ref_cnt > 0; some sequence's table names it
//   free      ref_cnt = 0, nothing worth keeping in it
//   cached    ref_cnt = 0, its contents are in the prefix index and may be held again
// "Cached" is also remembered for held blocks, so that they come to rest as cached ones. Free and
// cached blocks form one list: free ones in front, then cached ones from least to most recently
// released. allocate() takes the front, so nothing cached is lost while a free block is left.
//
// Owned by the engine thread. Allocates only in its constructor.
#pragma once

#include <cstdint>
#include <vector>

namespace dunlin {

inline constexpr std::int32_t kNoBlock = -1;
// Of one pool: block numbers, and twice as many prefix nodes, stay well inside 32 bits.
inline constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 28;

class BlockPool {
 public:
  explicit BlockPool(int num_blocks);

  struct Taken {
    std::int32_t block = kNoBlock;  // kNoBlock: none is left
    bool was_cached = false;        // the prefix index must forget it
  };
  // Takes the front of the list with ref_cnt 1, no longer cached.
  Taken allocate();

  void add_ref(std::int32_t block);  // held or cached
  // Gives one reference back; the last one moves the block to the list.
  void release(std::int32_t block);

  // Marks a held block as known to the prefix index.
  void mark_cached(std::int32_t block);
  // The prefix index no longer knows this cached block; a free one moves to the front of the list.
  void unmark_cached(std::int32_t block);

  int num_blocks() const { return static_cast<int>(states_.size()) - 1; }
  int num_free() const { return num_free_; }  // cached ones included
  int num_cached() const { return num_cached_; }
  int ref_cnt(std::int32_t block) const { return state(block).ref_cnt; }
  bool is_cached(std::int32_t block) const { return state(block).cached; }

  // The list from front to back, for tests and check_integrity.
  std::vector<std::int32_t> free_list() const;
  // Aborts where the counts, flags and list disagree.
  void check_integrity() const;

 private:
  // A node of a circular doubly linked list; the sentinel is the last element.
  struct State {
    std::int32_t ref_cnt = 0;
    bool cached = false;
    std::int32_t prev = kNoBlock;
    std::int32_t next = kNoBlock;
  };

  State& state(std::int32_t block) { return states_[static_cast<std::size_t>(block)]; }
  const State& state(std::int32_t block) const { return states_[static_cast<std::size_t>(block)]; }
  std::int32_t sentinel() const { return static_cast<std::int32_t>(states_.size()) - 1; }
  void link_before(std::int32_t block, std::int32_t next);
  void unlink(std::int32_t block);

  std::vector<State> states_;  // [num_blocks + 1]
  int num_free_ = 0;
  int num_cached_ = 0;  // of the free ones
};

}  // namespace dunlin
