// BlockTable: one sequence's blocks of one KV group. Entry i holds the tokens of absolute
// positions [i * kBlockSize, (i + 1) * kBlockSize); kNoBlock where a window has slid past it. A
// window may leave the first entries as they are (the sinks of kv_policy.h).
//
// Where a policy compacts, entries leave the middle of the table, and a token's slot is its
// position less what has left: the tokens before it have been moved.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/block_pool.h"
#include "kv/kv_layout.h"

namespace dunlin {

// Blocks that hold num_tokens tokens from position 0.
constexpr int num_blocks_for(int num_tokens) { return (num_tokens + kBlockSize - 1) / kBlockSize; }

class BlockTable {
 public:
  void reserve(int max_blocks) { blocks_.reserve(static_cast<std::size_t>(max_blocks)); }
  // While empty: so many entries at the front stay, however far a window slides.
  void keep_front(int num_blocks) { num_front_ = num_blocks; }

  int size() const { return static_cast<int>(blocks_.size()); }
  bool empty() const { return blocks_.empty(); }
  // Entries before it are kNoBlock, but for those at the front.
  int first_kept() const { return first_kept_; }
  int num_front() const { return num_front_; }
  bool has_gap() const { return first_kept_ > num_front_; }
  int num_held() const { return size() - (has_gap() ? first_kept_ - num_front_ : 0); }
  std::int32_t operator[](int idx) const { return blocks_[static_cast<std::size_t>(idx)]; }
  std::span<const std::int32_t> blocks() const { return blocks_; }

  // Tokens that have left.
  int num_dropped() const { return num_dropped_; }
  void set_dropped(int num_tokens) { num_dropped_ = num_tokens; }  // as another sequence's
  // Entries that num_tokens tokens fill, with those that have left.
  int size_for(int num_tokens) const { return num_blocks_for(num_tokens - num_dropped_); }
  // The entry of a token that was not compacted yet.
  int entry_of(int position) const { return (position - num_dropped_) / kBlockSize; }
  // Where its K and V lie in the arena: block * kBlockSize + offset.
  std::int64_t slot(int position) const {
    return std::int64_t{(*this)[entry_of(position)]} * kBlockSize + position % kBlockSize;
  }

  void append(std::int32_t block) { blocks_.push_back(block); }
  // Takes out the entries [first, last), of whose tokens none is there any more.
  void erase(int first, int last) {
    blocks_.erase(blocks_.begin() + first, blocks_.begin() + last);
    num_dropped_ += (last - first) * kBlockSize;
  }
  void replace(int idx, std::int32_t block) { blocks_[static_cast<std::size_t>(idx)] = block; }
  // Appends an entry that a window no longer needs; only before the first kept one.
  void append_gap() {
    blocks_.push_back(kNoBlock);
    first_kept_ = size();
  }
  // Takes the first kept entry out and returns its block (kNoBlock for one at the front, which
  // stays).
  std::int32_t drop_first() {
    if (first_kept_ < num_front_) return ++first_kept_, kNoBlock;
    const std::int32_t block = (*this)[first_kept_];
    replace(first_kept_++, kNoBlock);
    return block;
  }
  // Takes the last entry away and returns its block (kNoBlock for a gap).
  std::int32_t drop_last() {
    const std::int32_t block = blocks_.back();
    blocks_.pop_back();
    if (first_kept_ > size()) first_kept_ = size();
    if (empty()) num_dropped_ = 0;
    return block;
  }

 private:
  std::vector<std::int32_t> blocks_;
  int first_kept_ = 0;
  int num_front_ = 0;
  int num_dropped_ = 0;  // whole blocks
};

}  // namespace dunlin
