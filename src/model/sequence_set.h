// Runs a Model over a few sequences without the engine: for tests, tools and measurements. Every
// sequence gets a fixed range of blocks, so there is no allocation, sharing or preemption.
// One thread, the model's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dunlin/types.h"
#include "kv/kv_storage.h"
#include "model/model.h"

namespace dunlin {

class SequenceSet {
 public:
  // Room for num_seqs sequences of max_context tokens. A step takes at most max_step_tokens tokens
  // and gives at most max_outputs rows of logits. Calls model.reserve().
  SequenceSet(Model& model, int num_seqs, int max_context, int max_step_tokens, int max_outputs);

  // What one sequence does in a step: tokens that follow those it has, and which of their
  // positions (counted from 0 within `ids`, ascending) give a row of logits.
  struct Part {
    int seq_idx = 0;
    std::span<const TokenId> ids;
    std::span<const std::int32_t> wanted;
    std::span<const std::int32_t> wanted_hidden{};  // the same for hidden states
  };

  // One forward over all parts, in their order; a sequence stands in at most one of them. Returns
  // [number of wanted, vocab_size], valid until the next call.
  std::span<const float> step(std::span<const Part> parts);
  // [number of wanted_hidden, hidden_size] of the last step.
  std::span<const float> hidden() const { return hidden_; }

  int num_tokens(int seq_idx) const { return lengths_[static_cast<std::size_t>(seq_idx)]; }
  // Forgets what lies behind the first num_tokens tokens.
  void truncate(int seq_idx, int num_tokens);
  // In window groups, table entries of blocks that no later query can see become -1 and their
  // bytes are overwritten with NaN, as if the block served someone else.
  void free_behind_windows();

 private:
  void add_group(std::size_t group_idx, std::span<const Part> parts);

  Model& model_;
  KvStorage kv_;
  int max_blocks_ = 0;                             // of a sequence in a group
  std::vector<std::int32_t> lengths_;              // [num_seqs]
  std::vector<std::vector<std::int32_t>> tables_;  // per group [num_seqs, max_blocks_]
  std::vector<float> logits_, hidden_;

  // The batch being built.
  std::vector<TokenId> token_ids_;
  std::vector<std::int32_t> positions_, query_start_loc_, seq_lens_, logits_indices_,
      hidden_indices_;
  std::vector<std::vector<std::int32_t>> batch_tables_;
  std::vector<std::vector<std::int64_t>> slots_;
};

}  // namespace dunlin
