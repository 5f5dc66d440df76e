// Scheduler: who runs how many tokens in the next step, in which blocks. Knows tokens, budgets and
// blocks; never tensors.
//
// A step's tokens are handed out in this order:
//   1. running sequences with one token to compute: a long prompt never stalls another's stream
//   2. running sequences with more (chunked prefill), as far as the step's budget goes
//   3. waiting sequences, while the budget, max_seqs and the free blocks allow
// (those of a tenant that was served less than the prompt whose turn it is, before that one).
// The budget is max_batch_tokens, or less where the targets leave less (step_budget.h). Running
// ones go in the order of runs_before, prompts of the tenant that was served least first; waiting
// ones as waiting_queue.h says.
//
// When a running sequence gets no block, the one that runs_before puts last gives all of its blocks
// back and waits again (preemption by recompute; its full blocks stay in the prefix cache while
// there is room). So the first one always advances: no deadlock. Nobody is admitted in a step in
// which that happened, nor without room for everything it knows and for the growth of those that
// run, which doubles with each of its preemptions: no thrash. The waiting one whose turn it is
// keeps the others waiting until it fits. One whose next block of prompt is being computed by
// another in this step waits for it, so that equal prompts that come together are computed once.
//
// Choices over one prompt (Sequence::group) run with the first of them: it is admitted when there
// are slots for all, and the others join it, sharing its blocks, as its prompt is computed.
//
// Where all slots are taken and a tenant waits that has fewer of them than its share, the newest
// sequence of a tenant that has more than its own and was served more yields its slot, at most
// kMaxYields times in its life.
//
// Owned by the engine thread.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "engine/disk_prefixes.h"
#include "engine/engine.h"
#include "engine/fair_share.h"
#include "engine/sequence.h"
#include "engine/step_budget.h"
#include "engine/waiting_queue.h"
#include "kv/kv_cache_manager.h"

namespace dunlin {

struct SchedulerConfig {
  int max_seqs = 0;
  int max_batch_tokens = 0;      // at least max_seqs
  int max_logits_rows = 0;       // above max_seqs: what is above serves echo_logprobs
  bool whole_sequences = false;  // each runs in one step (encoders); none is longer than a step
  SchedulePolicy policy = SchedulePolicy::kPriority;
  int max_overtakes = 64;
  std::vector<double> tenant_shares{};
  StepTargets targets{};
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
  bool is_decode() const { return num_tokens == 1; }
};

// A choice that begins in a step in which another one of its group computes the end of the prompt:
// it takes over that one's blocks and draws its first token from the same logits.
struct ScheduledFork {
  Sequence* seq = nullptr;
  const Sequence* source = nullptr;
  int source_row = 0;  // of the step's rows
};

struct ScheduledBatch {
  std::vector<ScheduledSequence> seqs;
  std::vector<ScheduledFork> forks;  // run from now on, without tokens in this step
  int num_tokens = 0;
  int num_rows = 0;
  int num_samples = 0;     // of the rows: those that give a new token
  int num_first_runs = 0;  // sequences that run for the first time
  int num_preempted = 0;
  int num_prefix_queries = 0;  // tokens of first runs looked up in the prefix cache
  int num_prefix_hits = 0;     // tokens of them found
  StepWork work;
};

class Scheduler {
 public:
  static constexpr int kMaxYields = 4;

  // `kv` outlives the scheduler. Any sequence it is given fits alone.
  Scheduler(const SchedulerConfig& config, KvCacheManager& kv);
  ~Scheduler();

  // From now on admission reads on where the prefix cache in memory ends. Outlives the scheduler.
  void use_disk(DiskPrefixes& disk) { disk_ = &disk; }

  void add(std::unique_ptr<Sequence> seq);
  // Takes the sequence out, wherever it is, and gives its blocks back; null for an unknown id.
  std::unique_ptr<Sequence> remove(RequestId id);
  RequestId any_id() const;  // of some sequence that is here; 0 where none is
  // One whose time is over (Sequence::expiry); null where there is none.
  const Sequence* find_expired(EngineClock::time_point now);

  // Hands out the next step. Its slots are allocated; valid until the next call. Empty only where
  // there is nothing to run. `now`: what the age of a prompt is measured by.
  const ScheduledBatch& schedule(EngineClock::time_point now = {});
  // How long the step took that was handed out last.
  void note_step_time(double seconds) { budget_.observe(batch_.work, seconds); }

  bool has_work() const { return !running_.empty() || !waiting_.empty(); }
  int num_running() const { return static_cast<int>(running_.size()); }
  int num_waiting() const { return waiting_.size(); }

  KvWaste kv_waste() const;  // of all sequences
  std::array<KvPolicyUse, kNumKvPolicies> kv_policies() const;

  // Aborts where queues, blocks and limits disagree.
  void check_integrity() const;

 private:
  void yield_slot();
  void schedule_decodes();
  void begin_budget(EngineClock::time_point now);
  void schedule_prompts();
  bool admit_next();
  bool try_admit(Sequence& seq);
  int num_cached(Sequence& seq);
  void make_kv(Sequence& seq);
  bool make_room(Sequence& seq, int num_tokens);
  void preempt(std::size_t running_idx);
  void unschedule(const Sequence& seq);
  void fork_choices();
  bool may_join(const Sequence& seq) const;
  bool waits_for_choice(const Sequence& seq) const;
  bool is_being_computed(const Sequence& seq, int num_hit_tokens) const;
  int num_growth_blocks(const Sequence& seq) const;
  ScheduledSequence chunk_of(Sequence& seq) const;
  void append(const ScheduledSequence& scheduled);
  void run(std::unique_ptr<Sequence> seq);
  std::unique_ptr<Sequence> stop(std::size_t running_idx);

  SchedulerConfig config_;
  KvCacheManager& kv_;
  DiskPrefixes* disk_ = nullptr;
  StepBudget budget_;
  FairShare shares_;
  std::vector<std::unique_ptr<Sequence>> running_;  // in the order of runs_before
  WaitingQueue waiting_;
  EngineClock::time_point next_expiry_ = EngineClock::time_point::max();  // or earlier
  std::vector<Sequence*> prompts_;  // scratch of schedule_prompts
  bool is_out_of_blocks_ = false;   // somebody lost its blocks in this step
  ScheduledBatch batch_;
};

}  // namespace dunlin
