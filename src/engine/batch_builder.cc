#include "engine/batch_builder.h"

#include <algorithm>

namespace dunlin {

BatchBuilder::BatchBuilder(const SchedulerConfig& config, int num_groups, int max_context)
    : arrays_(static_cast<std::size_t>(num_groups)), groups_(static_cast<std::size_t>(num_groups)) {
  const auto max_tokens = static_cast<std::size_t>(config.max_batch_tokens);
  const auto max_seqs = static_cast<std::size_t>(config.max_seqs);
  token_ids_.reserve(max_tokens);
  positions_.reserve(max_tokens);
  query_start_loc_.reserve(max_seqs + 1);
  seq_lens_.reserve(max_seqs);
  logits_indices_.reserve(static_cast<std::size_t>(config.max_logits_rows));
  hidden_indices_.reserve(max_tokens);
  first_kept_.reserve(max_tokens);
  sink_positions_.reserve(max_tokens);
  page_budgets_.reserve(max_tokens);
  num_sinks_.reserve(max_seqs);
  slot_positions_.reserve(max_tokens);
  slot_lens_.reserve(max_seqs);
  voters_.reserve(max_seqs);
  batch_.causal = !config.whole_sequences;
  const std::size_t max_blocks = static_cast<std::size_t>(num_blocks_for(max_context));
  for (GroupArrays& arrays : arrays_) {
    arrays.num_entries = max_seqs * max_blocks;
    arrays.block_tables = std::make_unique_for_overwrite<std::int32_t[]>(arrays.num_entries);
    arrays.slot_mapping.reserve(max_tokens);
  }
}

const ForwardBatch& BatchBuilder::build(const ScheduledBatch& scheduled) {
  token_ids_.clear();
  positions_.clear();
  query_start_loc_.assign(1, 0);
  seq_lens_.clear();
  logits_indices_.clear();
  hidden_indices_.clear();
  for (const ScheduledSequence& s : scheduled.seqs) {
    const std::int32_t first_token = query_start_loc_.back();
    const auto begin = s.seq->tokens.begin() + s.begin;
    token_ids_.insert(token_ids_.end(), begin, begin + s.num_tokens);
    for (int position = s.begin; position < s.end(); ++position) positions_.push_back(position);
    for (int position = s.first_row; position < s.end(); ++position) {
      logits_indices_.push_back(first_token + position - s.begin);
    }
    const PooledPositions pooled = pooled_positions(*s.seq, s.begin, s.end());
    for (int position = pooled.begin; position < pooled.end; ++position)
      hidden_indices_.push_back(first_token + position - s.begin);
    query_start_loc_.push_back(first_token + s.num_tokens);
    seq_lens_.push_back(s.end());
  }
  for (int g = 0; g < static_cast<int>(groups_.size()); ++g) fill_group(g, scheduled);
  fill_kept(scheduled);
  fill_page_budgets(scheduled);
  fill_slots(scheduled);
  fill_voters(scheduled);
  batch_.token_ids = token_ids_;
  batch_.positions = positions_;
  batch_.query_start_loc = query_start_loc_;
  batch_.seq_lens = seq_lens_;
  batch_.logits_indices = logits_indices_;
  batch_.hidden_indices = hidden_indices_;
  batch_.groups = groups_;
  return batch_;
}

// Empty where every token sees all before it.
void BatchBuilder::fill_kept(const ScheduledBatch& scheduled) {
  first_kept_.clear();
  num_sinks_.clear();
  sink_positions_.clear();
  batch_.kept = {};
  const auto misses_some = [](const ScheduledSequence& s) {
    return s.seq->kv_policy.first_kept(s.end() - 1) > 0;
  };
  if (std::none_of(scheduled.seqs.begin(), scheduled.seqs.end(), misses_some)) return;
  for (const ScheduledSequence& s : scheduled.seqs) {
    const KvPolicy& policy = s.seq->kv_policy;
    num_sinks_.push_back(policy.gives_back() ? policy.sinks : 0);
    for (int position = s.begin; position < s.end(); ++position) {
      const int first = policy.first_kept(position);
      first_kept_.push_back(first);
      sink_positions_.push_back(first == 0 ? position : position - first + policy.sinks);
    }
  }
  batch_.kept = {first_kept_, num_sinks_, sink_positions_};
}

// Empty where every query reads all that it sees.
void BatchBuilder::fill_page_budgets(const ScheduledBatch& scheduled) {
  page_budgets_.clear();
  bool is_any = false;
  for (const ScheduledSequence& s : scheduled.seqs) {
    for (int position = s.begin; position < s.end(); ++position) {
      page_budgets_.push_back(
          s.seq->kv_policy.num_pages(position, s.seq->num_policy_prompt_tokens));
      is_any = is_any || page_budgets_.back() > 0;
    }
  }
  batch_.page_budgets = {};
  if (is_any) batch_.page_budgets = page_budgets_;
}

// Empty where a token's slot is its position.
void BatchBuilder::fill_slots(const ScheduledBatch& scheduled) {
  slot_positions_.clear();
  slot_lens_.clear();
  bool is_any = false;
  for (const ScheduledSequence& s : scheduled.seqs) {
    const int dropped = s.seq->kv.num_dropped_tokens();
    is_any = is_any || dropped > 0;
    for (int position = s.begin; position < s.end(); ++position)
      slot_positions_.push_back(position - dropped);
    slot_lens_.push_back(s.end() - dropped);
  }
  batch_.slot_positions = batch_.slot_lens = {};
  if (!is_any) return;
  batch_.slot_positions = slot_positions_;
  batch_.slot_lens = slot_lens_;
}

// A step has no votes of a sequence or those of all of its tokens, since it ends where they begin.
void BatchBuilder::fill_voters(const ScheduledBatch& scheduled) {
  voters_.clear();
  for (int i = 0; i < static_cast<int>(scheduled.seqs.size()); ++i) {
    const ScheduledSequence& s = scheduled.seqs[static_cast<std::size_t>(i)];
    const KvPolicy& policy = s.seq->kv_policy;
    const int num_prompt = s.seq->num_policy_prompt_tokens;
    if (s.begin < policy.first_vote(num_prompt) || s.begin >= policy.end_of_votes(num_prompt))
      continue;
    voters_.push_back({i, &s.seq->kv.votes(), policy.compaction(s.end(), num_prompt)});
  }
  batch_.voters = voters_;
}

void BatchBuilder::fill_group(int group_idx, const ScheduledBatch& scheduled) {
  GroupArrays& arrays = arrays_[static_cast<std::size_t>(group_idx)];
  std::size_t width = 0;
  for (const ScheduledSequence& s : scheduled.seqs) {
    width = std::max(width, s.seq->kv.table(group_idx).blocks().size());
  }
  arrays.slot_mapping.clear();
  if (scheduled.seqs.size() * width > arrays.num_entries) {
    arrays.num_entries = 2 * scheduled.seqs.size() * width;
    arrays.block_tables = std::make_unique_for_overwrite<std::int32_t[]>(arrays.num_entries);
  }
  std::int32_t* row = arrays.block_tables.get();
  for (const ScheduledSequence& s : scheduled.seqs) {
    const BlockTable& table = s.seq->kv.table(group_idx);
    const auto end = std::copy(table.blocks().begin(), table.blocks().end(), row);
    std::fill(end, row + width, kNoBlock);
    row += width;
    for (int position = s.begin; position < s.end(); ++position) {
      arrays.slot_mapping.push_back(table.slot(position));
    }
  }
  ForwardBatch::Group& group = groups_[static_cast<std::size_t>(group_idx)];
  group.max_blocks_per_seq = static_cast<std::int32_t>(width);
  group.block_tables = {arrays.block_tables.get(), scheduled.seqs.size() * width};
  group.slot_mapping = arrays.slot_mapping;
}

}  // namespace dunlin
