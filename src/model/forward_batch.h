// ForwardBatch: the input contract of every model. One call serves prefill, decode, mixed steps
// and, later, verification of drafts. Ragged, no padding. All spans are owned by the engine's
// batch builder and stay valid for the call.
#pragma once

#include <cstdint>
#include <span>

#include "dunlin/types.h"
#include "kv/kv_policy.h"
#include "kv/kv_votes.h"

namespace dunlin {

struct ForwardBatch {
  std::span<const TokenId> token_ids;             // [num_tokens] sequences one after another
  std::span<const std::int32_t> positions;        // [num_tokens] absolute
  std::span<const std::int32_t> query_start_loc;  // [num_seqs + 1] first token of each sequence
  std::span<const std::int32_t> seq_lens;  // [num_seqs] tokens in the KV cache after this step

  // Per KV group (KvLayout::groups): where this step's K and V go and where old ones are.
  struct Group {
    std::span<const std::int32_t>
        block_tables;  // [num_seqs, max_blocks_per_seq]; -1: freed or unused
    std::int32_t max_blocks_per_seq = 0;
    std::span<const std::int64_t> slot_mapping;  // [num_tokens] block * kBlockSize + offset
  };
  std::span<const Group> groups;  // [num_groups]

  // Where layers of full attention see only some tokens (kv/kv_policy.h); all empty: nowhere.
  struct Kept {
    std::span<const std::int32_t> first;      // [num_tokens] the first token seen; 0: all
    std::span<const std::int32_t> num_sinks;  // [num_seqs] tokens seen besides, where it isn't 0
    // [num_tokens] The token's position among those that it sees, for its query of the sinks.
    std::span<const std::int32_t> sink_positions;

    bool is_empty() const { return first.empty(); }
  };
  Kept kept;
  // [num_tokens] Blocks that the token's query reads of each KV head, in layers of full attention
  // behind the first ones; 0: all. Of one sequence those with 0 come first. Empty: all have 0.
  std::span<const std::int32_t> page_budgets;

  // Where layers of full attention keep some tokens of a sequence only, in its first slots: which
  // slot each token of the step takes, and how many there are then. Empty: positions and seq_lens.
  std::span<const std::int32_t> slot_positions;  // [num_tokens]
  std::span<const std::int32_t> slot_lens;       // [num_seqs]
  // Sequences whose queries vote on what stays in the cache, in layers of full attention,
  // ascending. Where a compaction is due behind the step the model does it, layer by layer.
  struct Voter {
    int seq = 0;
    KvVotes* votes = nullptr;
    KvCompaction compaction;
  };
  std::span<const Voter> voters;

  // Rows of token_ids whose logits are wanted, ascending; often the last token of each sequence.
  std::span<const std::int32_t> logits_indices;  // [num_outputs]

  // Rows of token_ids whose hidden state behind the last norm is wanted, ascending: embeddings.
  std::span<const std::int32_t> hidden_indices;  // [num_hidden]

  // false: a token sees its whole sequence, which is in the batch from its first token on
  // (ModelLimits::is_encoder).
  bool causal = true;

  int num_tokens() const { return static_cast<int>(token_ids.size()); }
  int num_seqs() const { return static_cast<int>(seq_lens.size()); }
  int num_outputs() const { return static_cast<int>(logits_indices.size()); }
  int num_hidden() const { return static_cast<int>(hidden_indices.size()); }
};

}  // namespace dunlin
