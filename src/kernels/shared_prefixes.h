// Sequences of a batch that begin with the same blocks, so that a step may read these once for all
// of them (the two-phase attention of Ye et al., "ChunkAttention", 2024). Internal to kernels/.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention.h"

namespace dunlin {

class SharedPrefixes {
 public:
  // Positions [0, end) of num_members sequences, two or more; whole splits of attention.h.
  struct Group {
    int first_member, num_members;
    std::int32_t end;
  };

  void reserve(std::int64_t max_seqs);
  // Looks at sequences with one query that sees everything before it, and joins at most
  // max_members of them in all. Costs a comparison a pair of them where nothing is shared.
  void find(const AttentionParams& params, const AttentionBatch& batch, const PagedKvLayer& layer,
            std::int64_t max_members);

  std::span<const Group> groups() const { return groups_; }
  int num_members() const { return static_cast<int>(members_.size()); }
  int seq_of(int member) const { return members_[static_cast<std::size_t>(member)]; }
  // -1: the sequence shares nothing.
  int member_of(int seq) const { return member_of_[static_cast<std::size_t>(seq)]; }
  std::int32_t end_of(int seq) const { return ends_[static_cast<std::size_t>(seq)]; }

 private:
  void join_those_like(int leader, const AttentionBatch& batch, std::int64_t max_members);

  std::vector<Group> groups_;
  std::vector<int> members_;             // sequences, group by group
  std::vector<int> member_of_;           // [num_seqs]
  std::vector<std::int32_t> ends_;       // [num_seqs], 0: shares nothing
  std::vector<std::int32_t> first_ids_;  // [num_seqs] first blocks; -1: is not looked at
};

}  // namespace dunlin
