// Scheduler: who runs how many tokens in the next step, in which blocks. Knows tokens, budgets and
// blocks; never tensors.
//
// A step's tokens are handed out in this order, each part in the order of priority and arrival:
//   1. running sequences with one token to compute: a long prompt never stalls another's stream
//   2. running sequences with more (chunked prefill), as far as the budget of tokens goes
//   3. waiting sequences, while the budget, max_seqs and the free blocks allow
// When a running sequence gets no block, the one that runs_before puts last gives all of its blocks
// back and waits again (preemption by recompute; its full blocks stay in the prefix cache while
// there is room). So the first one always advances: no deadlock. Nobody is admitted in a step that
// preempted, nor without room for everything it knows and for the growth of those that run, which
// doubles with each of its preemptions: no thrash. The waiting ones don't overtake each other. One
// whose next block of prompt is being computed by another in this step waits for it, so that equal
// prompts that come together are computed once.
//
// Owned by the engine thread.
#pragma once

#include <memory>
#include <vector>

#include "engine/disk_prefixes.h"
#include "engine/sequence.h"
#include "kv/kv_cache_manager.h"

namespace dunlin {

struct SchedulerConfig {
  int max_seqs = 0;
  int max_batch_tokens = 0;  // at least max_seqs
  int max_logits_rows = 0;   // above max_seqs: what is above serves echo_logprobs
};

// One sequence's share of a step: the tokens [begin, begin + num_tokens) of its history.
struct ScheduledSequence {
  Sequence* seq = nullptr;
  int begin = 0;
  int num_tokens = 0;
  int num_prompt_tokens = 0;  // of the sequence, for counting after it is gone
  int first_row = 0;          // positions [first_row, begin + num_tokens) whose logits are wanted
  bool samples = false;       // the last of them gives a new token

  int end() const { return begin + num_tokens; }
  int num_rows() const { return end() - first_row; }
};

struct ScheduledBatch {
  std::vector<ScheduledSequence> seqs;
  int num_tokens = 0;
  int num_rows = 0;
  int num_samples = 0;     // of the rows: those that give a new token
  int num_first_runs = 0;  // sequences that run for the first time
  int num_preempted = 0;
  int num_prefix_queries = 0;  // tokens of first runs looked up in the prefix cache
  int num_prefix_hits = 0;     // tokens of them found
};

class Scheduler {
 public:
  // `kv` outlives the scheduler. Any sequence it is given fits alone.
  Scheduler(const SchedulerConfig& config, KvCacheManager& kv);
  ~Scheduler();

  // From now on admission reads on where the prefix cache in memory ends. Outlives the scheduler.
  void use_disk(DiskPrefixes& disk) { disk_ = &disk; }

  void add(std::unique_ptr<Sequence> seq);
  // Takes the sequence out, wherever it is, and gives its blocks back; null for an unknown id.
  std::unique_ptr<Sequence> remove(RequestId id);
  RequestId any_id() const;  // of some sequence that is here; 0 where none is

  // Hands out the next step. Its slots are allocated; valid until the next call. Empty only where
  // there is nothing to run.
  const ScheduledBatch& schedule();

  bool has_work() const { return !running_.empty() || !waiting_.empty(); }
  int num_running() const { return static_cast<int>(running_.size()); }
  int num_waiting() const { return static_cast<int>(waiting_.size()); }

  KvWaste kv_waste() const;  // of all sequences

  // Aborts where queues, blocks and limits disagree.
  void check_integrity() const;

 private:
  using Queue = std::vector<std::unique_ptr<Sequence>>;  // in the order of runs_before

  static void insert(Queue& queue, std::unique_ptr<Sequence> seq);
  void schedule_running(bool decoding);
  void schedule_waiting();
  bool try_admit();
  bool make_room(Sequence& seq, int num_tokens);
  void preempt_last();
  void unschedule(const Sequence& seq);
  bool is_being_computed(const Sequence& seq, int num_hit_tokens) const;
  int num_growth_blocks(const Sequence& seq) const;
  ScheduledSequence chunk_of(Sequence& seq) const;
  void append(const ScheduledSequence& scheduled);

  SchedulerConfig config_;
  KvCacheManager& kv_;
  DiskPrefixes* disk_ = nullptr;
  Queue running_;
  Queue waiting_;
  ScheduledBatch batch_;
};

}  // namespace dunlin
