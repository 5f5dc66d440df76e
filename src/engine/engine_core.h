// EngineCore: the engine without its thread. One step is schedule, run, commit.
//
// Not thread-safe: all of it belongs to the engine thread (or to a test).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/batch_builder.h"
#include "engine/disk_prefixes.h"
#include "engine/engine.h"
#include "engine/model_runner.h"
#include "engine/row_sampler.h"
#include "engine/scheduler.h"

namespace dunlin {

// Rows of logits in a step: above one for each sequence, prompt tokens that are scored.
inline int max_logits_rows(const EngineConfig& config) {
  return config.max_seqs + config.max_scored_tokens;
}

class EngineCore {
 public:
  // `config` has every default filled in. `disk`: null, or outlives the core.
  EngineCore(std::unique_ptr<Model> model, const EngineConfig& config, std::int32_t num_blocks,
             DiskTier* disk = nullptr);

  void add(std::unique_ptr<Sequence> seq) { scheduler_.add(std::move(seq)); }
  // Ends a sequence with FinishReason::kCancelled; no-op for an unknown or finished id.
  void abort(RequestId id);
  void abort_all();
  // Ends what had its time at `now` (TokenOutput::ended_by).
  void expire(EngineClock::time_point now);

  PrefixCacheReset reset_prefix_cache();

  bool has_work() const { return scheduler_.has_work(); }
  void step();

  // What happened since the last call, for the request queue.
  int take_left_queue() { return std::exchange(num_left_queue_, 0); }
  int take_finished() { return std::exchange(num_finished_, 0); }

  const EngineStats& stats();  // brought up to date
  void check_integrity() const { scheduler_.check_integrity(); }

 private:
  void commit(const ScheduledBatch& scheduled, const StepRows& rows);
  void commit_tokens(const ScheduledSequence& scheduled);
  void commit_fork(const ScheduledFork& fork);
  // `hidden`: of the step's pooled_positions, [number of them, hidden_size].
  void pool_hidden(const ScheduledSequence& scheduled, std::span<const float> hidden);
  void finish_prompt(const Sequence& seq);
  void score_prompt(const ScheduledSequence& scheduled, std::span<const float> rows);
  void accept(Sequence& seq, SampledToken& sampled);
  FinishReason finish_reason(const Sequence& seq, TokenId token) const;
  void push(Sequence& seq, TokenOutput output);
  void finish(const Sequence& seq, TokenOutput output);
  void tell_end(Sequence& seq, TokenOutput output);
  void note_token(Sequence& seq);
  void note_finish(const Sequence& seq, FinishReason reason);
  void note_step(const ScheduledBatch& scheduled, double seconds);

  EngineConfig config_;
  KvCacheManager kv_;
  SchedulerConfig scheduler_config_;
  Scheduler scheduler_;
  BatchBuilder builder_;
  ModelRunner runner_;
  RowSampler sampler_;
  DiskTier* const disk_;
  std::optional<DiskPrefixes> disk_prefixes_;        // with disk_
  std::vector<Candidate> candidates_;                // scratch of score_prompt
  std::vector<std::unique_ptr<Sequence>> finished_;  // kept to the end of the step
  EngineClock::time_point now_;                      // of the current commit
  EngineStats stats_;
  int num_left_queue_ = 0;
  int num_finished_ = 0;
};

}  // namespace dunlin
