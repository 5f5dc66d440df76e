// What serving a model takes of memory, from its configuration alone: the one place that adds up
// weights, KV cache, scratch and overhead, for `plan`, `inspect`, and a server before it loads.
//
// Weights, KV cache and scratch are what the code allocates for them, to the byte; overhead is the
// program, the vocabulary and small things, estimated from measurements.
#pragma once

#include <cstdint>
#include <vector>

#include "dunlin/status.h"
#include "engine/engine.h"
#include "kv/kv_layout.h"
#include "model/config.h"
#include "model/weight_sizes.h"

namespace dunlin {

struct MemoryPlan {
  std::int64_t weights = 0;  // packed
  std::int64_t kv = 0;       // the arena of blocks
  std::int64_t scratch = 0;  // of the largest step: activations, attention, logits, samplers
  std::int64_t overhead =
      0;  // program, vocabulary, tables of blocks and sequences; what policies count
  std::int64_t num_blocks = 0;

  std::int64_t total() const { return weights + kv + scratch + overhead; }
};

class MemoryPlanner {
 public:
  // Of `limits` counts: max_seqs, max_batch_tokens (raised to max_seqs where it is less),
  // max_context (0: the model's), and kv_policy, by which sequences are counted; the cache as a
  // whole is made for full contexts, which a request may always ask for.
  MemoryPlanner(const ModelConfig& config, const WeightSizes& weights, const KvLayout& layout,
                int num_threads, const EngineConfig& limits);

  MemoryPlan with_blocks(std::int64_t num_blocks) const;
  // With room for that many sequences of `context` tokens at once.
  MemoryPlan with_sequences(std::int64_t num_sequences, int context) const;
  // The largest KV cache within `bytes` in all, but no more than max_seqs full contexts use. With
  // no blocks where there is no room for one.
  MemoryPlan within(std::int64_t bytes) const;

  // Sequences of `context` tokens that so many blocks, or so many bytes in all, hold at once.
  std::int64_t sequences(std::int64_t num_blocks, int context) const;
  std::int64_t fitting_sequences(std::int64_t bytes, int context) const {
    return sequences(blocks_within(bytes), context);
  }
  // Of one sequence, while a chunk of its prompt is computed.
  std::int64_t blocks_for(int context, const KvPolicy& policy = {}) const;
  // The longest context, at most max_context, that so many blocks hold; 0: not one token's.
  int longest_context(std::int64_t num_blocks) const;
  int max_context() const { return max_context_; }
  const KvLayout& layout() const { return layout_; }
  const KvPolicy& kv_policy() const { return kv_policy_; }

 private:
  std::int64_t blocks_within(std::int64_t bytes) const;
  std::int64_t scratch_bytes(const ModelConfig& config, bool keep_float, int num_threads) const;

  KvLayout layout_;
  KvPolicy kv_policy_;
  int max_context_ = 0, max_seqs_ = 0, max_logits_rows_ = 0, max_batch_tokens_ = 0;
  MemoryPlan fixed_;  // without blocks
};

// What a server says when it starts.
struct MemoryTable {
  MemoryPlan plan;
  std::int64_t budget = 0;  // 0: unknown
  std::int64_t kv_bytes_per_token = 0;
  KvPolicy kv_policy{};  // of those that fit
  struct Fit {
    int context = 0;
    std::int64_t sequences = 0;
  };
  std::vector<Fit> fits;  // contexts ascending, up to the longest that fits
};
MemoryTable memory_table(const MemoryPlanner& planner, const MemoryPlan& plan, std::int64_t budget);

// A budget that holds not even the weights or one sequence of max_context tokens: refused with the
// numbers. max_context 0 is content with less than the model's context, down to two blocks.
Outcome check_plan(const MemoryPlanner& planner, const MemoryPlan& plan, std::int64_t budget,
                   int wanted_context);

}  // namespace dunlin
