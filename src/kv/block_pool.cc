#include "kv/block_pool.h"

#include "base/check.h"

namespace dunlin {

BlockPool::BlockPool(int num_blocks) : states_(static_cast<std::size_t>(num_blocks) + 1) {
  DUNLIN_CHECK(num_blocks > 0, "a pool has at least one block");
  state(sentinel()).prev = state(sentinel()).next = sentinel();
  for (std::int32_t block = 0; block < num_blocks; ++block) link_before(block, sentinel());
  num_free_ = num_blocks;
}

BlockPool::Taken BlockPool::allocate() {
  const std::int32_t block = state(sentinel()).next;
  if (block == sentinel()) return {};
  unlink(block);
  State& taken = state(block);
  const bool was_cached = taken.cached;
  if (was_cached) --num_cached_;
  --num_free_;
  taken.cached = false;
  taken.ref_cnt = 1;
  return {block, was_cached};
}

void BlockPool::add_ref(std::int32_t block) {
  State& held = state(block);
  if (held.ref_cnt == 0) {
    DUNLIN_CHECK(held.cached, "a free block has no contents to share");
    unlink(block);
    --num_free_;
    --num_cached_;
  }
  ++held.ref_cnt;
}

void BlockPool::release(std::int32_t block) {
  State& held = state(block);
  DUNLIN_CHECK(held.ref_cnt > 0, "released a block nobody holds");
  if (--held.ref_cnt > 0) return;
  ++num_free_;
  if (held.cached) {
    ++num_cached_;
    link_before(block, sentinel());
  } else {
    link_before(block, state(sentinel()).next);
  }
}

void BlockPool::mark_cached(std::int32_t block) {
  DUNLIN_CHECK(state(block).ref_cnt > 0, "only a held block becomes cached");
  state(block).cached = true;
}

void BlockPool::unmark_cached(std::int32_t block) {
  State& known = state(block);
  DUNLIN_CHECK(known.cached, "only a cached block is unmarked");
  known.cached = false;
  if (known.ref_cnt > 0) return;
  --num_cached_;
  unlink(block);
  link_before(block, state(sentinel()).next);
}

std::vector<std::int32_t> BlockPool::free_list() const {
  std::vector<std::int32_t> list;
  for (std::int32_t b = state(sentinel()).next; b != sentinel(); b = state(b).next) {
    list.push_back(b);
  }
  return list;
}

void BlockPool::check_integrity() const {
  int listed = 0;
  int cached = 0;
  for (std::int32_t b = state(sentinel()).next; b != sentinel(); b = state(b).next) {
    DUNLIN_CHECK(state(b).ref_cnt == 0, "a held block is in the free list");
    DUNLIN_CHECK(state(b).cached || cached == 0, "a free block stands behind a cached one");
    DUNLIN_CHECK(state(state(b).next).prev == b, "the free list is torn");
    ++listed;
    cached += state(b).cached;
    DUNLIN_CHECK(listed <= num_blocks(), "the free list is a loop");
  }
  int free = 0;
  for (std::int32_t b = 0; b < num_blocks(); ++b) free += state(b).ref_cnt == 0;
  DUNLIN_CHECK(listed == num_free_ && free == num_free_, "num_free is wrong");
  DUNLIN_CHECK(cached == num_cached_, "num_cached is wrong");
}

void BlockPool::link_before(std::int32_t block, std::int32_t next) {
  const std::int32_t prev = state(next).prev;
  state(block).prev = prev;
  state(block).next = next;
  state(prev).next = block;
  state(next).prev = block;
}

void BlockPool::unlink(std::int32_t block) {
  State& gone = state(block);
  state(gone.prev).next = gone.next;
  state(gone.next).prev = gone.prev;
  gone.prev = gone.next = kNoBlock;
}

}  // namespace dunlin
