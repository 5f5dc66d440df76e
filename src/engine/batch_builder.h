// BatchBuilder: turns a ScheduledBatch into the model's ForwardBatch. Owns the arrays that the
// batch points to; allocates in its constructor, address space for the largest batch of contexts,
// and later only where a policy lets a text grow beyond its context.
#pragma once

#include <memory>
#include <vector>

#include "engine/scheduler.h"
#include "model/forward_batch.h"

namespace dunlin {

class BatchBuilder {
 public:
  BatchBuilder(const SchedulerConfig& config, int num_groups, int max_context);

  // Valid until the next call. Rows of logits come in the order of the scheduled sequences, each
  // one's in ascending position; so do hidden states (pooled_positions).
  const ForwardBatch& build(const ScheduledBatch& scheduled);

 private:
  struct GroupArrays {
    std::unique_ptr<std::int32_t[]> block_tables;  // [num_entries], untouched until used
    std::size_t num_entries = 0;                   // max_seqs * max_blocks, or more
    std::vector<std::int64_t> slot_mapping;        // [max_batch_tokens]
  };

  void fill_group(int group_idx, const ScheduledBatch& scheduled);
  void fill_kept(const ScheduledBatch& scheduled);
  void fill_page_budgets(const ScheduledBatch& scheduled);
  void fill_slots(const ScheduledBatch& scheduled);
  void fill_voters(const ScheduledBatch& scheduled);

  std::vector<TokenId> token_ids_;
  std::vector<std::int32_t> positions_;
  std::vector<std::int32_t> query_start_loc_;
  std::vector<std::int32_t> seq_lens_;
  std::vector<std::int32_t> logits_indices_;
  std::vector<std::int32_t> hidden_indices_;
  std::vector<std::int32_t> first_kept_, num_sinks_, sink_positions_, page_budgets_;
  std::vector<std::int32_t> slot_positions_, slot_lens_;
  std::vector<ForwardBatch::Voter> voters_;
  std::vector<GroupArrays> arrays_;
  std::vector<ForwardBatch::Group> groups_;
  ForwardBatch batch_;
};

}  // namespace dunlin
