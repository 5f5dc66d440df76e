// What a compaction (kv_policy.h) does to the bytes of one KV head: tokens are moved as they are
// stored, nothing is rounded again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/paged_kv.h"
#include "kv/kv_policy.h"

namespace dunlin {

// One worker's memory.
struct KvCompactionScratch {
  std::vector<float> scores;
  std::vector<std::int32_t> order;
};

// Which of the slots [0, from) stay, ascending: the `to` with the greatest votes, each counted as
// the most votes among the `pool` around it within these. Ties go to the earlier slot; what is no
// number has no votes. Valid until the scratch is used again.
std::span<const std::int32_t> choose_slots(const KvCompaction& compaction,
                                           std::span<const float> votes,
                                           KvCompactionScratch& scratch);

// A slot's key and value of a head to another slot; slots as PagedKvLayer counts them.
void move_token(const PagedKvLayer& layer, int kv_head, std::int64_t from, std::int64_t to);

// Chooses by the head's votes, moves what stays behind [0, to) to where something goes, in
// ascending order, and the votes with it: those of [from, votes.size()) move up, with none at the
// end. blocks: the sequence's table; the blocks of [0, to) are its own.
void compact_head(const PagedKvLayer& layer, int kv_head, const std::int32_t* blocks,
                  const KvCompaction& compaction, std::span<float> votes,
                  KvCompactionScratch& scratch);

}  // namespace dunlin
