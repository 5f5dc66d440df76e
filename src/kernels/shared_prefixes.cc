#include "kernels/shared_prefixes.h"

#include <algorithm>

#include "kernels/page_selection.h"

namespace dunlin {
namespace {

constexpr std::int32_t kBlocksPerSplit = kAttentionSplit / kKvBlockSize;

std::int32_t position_of(const AttentionBatch& batch, int seq) {
  const std::int32_t token = batch.query_start_loc[static_cast<std::size_t>(seq)];
  return batch.positions[static_cast<std::size_t>(token)];
}

// Splits that both queries see whole and whose blocks are the same.
std::int32_t common_splits(const AttentionBatch& batch, int a, int b) {
  const std::int32_t* const table_a = batch.block_tables.data() + a * batch.max_blocks_per_seq;
  const std::int32_t* const table_b = batch.block_tables.data() + b * batch.max_blocks_per_seq;
  const std::int32_t seen =
      (std::min(position_of(batch, a), position_of(batch, b)) + 1) / kAttentionSplit;
  const std::int32_t num_blocks = seen * kBlocksPerSplit;
  const auto end = std::mismatch(table_a, table_a + num_blocks, table_b).first;
  return static_cast<std::int32_t>(end - table_a) / kBlocksPerSplit;
}

}  // namespace

void SharedPrefixes::reserve(std::int64_t max_seqs) {
  const auto num = static_cast<std::size_t>(max_seqs);
  groups_.reserve(num / 2);
  members_.reserve(num);
  member_of_.reserve(num);
  ends_.reserve(num);
  first_ids_.reserve(num);
}

void SharedPrefixes::find(const AttentionParams& params, const AttentionBatch& batch,
                          const PagedKvLayer& layer, std::int64_t max_members) {
  const auto num_seqs = static_cast<int>(batch.seq_lens.size());
  groups_.clear();
  members_.clear();
  member_of_.assign(batch.seq_lens.size(), -1);
  ends_.assign(batch.seq_lens.size(), 0);
  first_ids_.assign(batch.seq_lens.size(), -1);
  if (layer.window > 0 || !params.causal || num_seqs < 2) return;
  for (int seq = 0; seq < num_seqs; ++seq) {
    const auto i = static_cast<std::size_t>(seq);
    const bool is_decode = batch.query_start_loc[i + 1] - batch.query_start_loc[i] == 1;
    if (is_decode && position_of(batch, seq) + 1 >= kAttentionSplit &&
        batch.first_kept(batch.query_start_loc[i]) == 0 &&
        (batch.selection == nullptr || !batch.selection->is_sparse(batch.query_start_loc[i])))
      first_ids_[i] = batch.block_tables[i * static_cast<std::size_t>(batch.max_blocks_per_seq)];
  }
  for (int seq = 0; seq + 1 < num_seqs; ++seq) {
    if (first_ids_[static_cast<std::size_t>(seq)] >= 0) join_those_like(seq, batch, max_members);
  }
}

// What a group shares is what all of its members do.
void SharedPrefixes::join_those_like(int leader, const AttentionBatch& batch,
                                     std::int64_t max_members) {
  const auto num_seqs = static_cast<int>(batch.seq_lens.size());
  const std::int32_t first_id = first_ids_[static_cast<std::size_t>(leader)];
  Group group{num_members(), 0, 0};
  std::int32_t splits = 0;
  for (int seq = leader + 1; seq < num_seqs && num_members() < max_members; ++seq) {
    if (first_ids_[static_cast<std::size_t>(seq)] != first_id) continue;
    const std::int32_t common = common_splits(batch, leader, seq);
    if (common == 0) continue;
    if (group.num_members == 0) {
      if (num_members() + 2 > max_members) return;
      members_.push_back(leader);
      splits = common;
      group.num_members = 1;
    }
    members_.push_back(seq);
    splits = std::min(splits, common);
    ++group.num_members;
  }
  if (group.num_members == 0) return;
  group.end = splits * kAttentionSplit;
  for (int member = group.first_member; member < num_members(); ++member) {
    const auto seq = static_cast<std::size_t>(seq_of(member));
    member_of_[seq] = member;
    ends_[seq] = group.end;
    first_ids_[seq] = -1;
  }
  groups_.push_back(group);
}

}  // namespace dunlin
