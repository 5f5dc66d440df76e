#include "engine/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace dunlin {

Scheduler::Scheduler(const SchedulerConfig& config, KvCacheManager& kv) : config_(config), kv_(kv) {
  DUNLIN_CHECK(config.max_batch_tokens >= config.max_seqs, "each running sequence gets a token");
  DUNLIN_CHECK(config.max_logits_rows > config.max_seqs, "echo needs a row of its own");
  batch_.seqs.reserve(static_cast<std::size_t>(config.max_seqs));
  running_.reserve(static_cast<std::size_t>(config.max_seqs));
}

Scheduler::~Scheduler() {
  while (has_work()) remove(any_id());
}

void Scheduler::insert(Queue& queue, std::unique_ptr<Sequence> seq) {
  const auto behind =
      std::upper_bound(queue.begin(), queue.end(), seq,
                       [](const auto& a, const auto& b) { return runs_before(*a, *b); });
  queue.insert(behind, std::move(seq));
}

void Scheduler::add(std::unique_ptr<Sequence> seq) { insert(waiting_, std::move(seq)); }

std::unique_ptr<Sequence> Scheduler::remove(RequestId id) {
  for (Queue* queue : {&running_, &waiting_}) {
    const auto it =
        std::find_if(queue->begin(), queue->end(), [id](const auto& seq) { return seq->id == id; });
    if (it == queue->end()) continue;
    std::unique_ptr<Sequence> seq = std::move(*it);
    queue->erase(it);
    kv_.free(seq->kv);
    return seq;
  }
  return nullptr;
}

RequestId Scheduler::any_id() const {
  if (!running_.empty()) return running_.back()->id;
  return waiting_.empty() ? 0 : waiting_.back()->id;
}

const ScheduledBatch& Scheduler::schedule() {
  batch_.seqs.clear();
  batch_.num_tokens = batch_.num_rows = batch_.num_samples = 0;
  batch_.num_first_runs = batch_.num_preempted = 0;
  batch_.num_prefix_queries = batch_.num_prefix_hits = 0;
  if (disk_ != nullptr) disk_->begin_step();
  schedule_running(/*decoding=*/true);
  schedule_running(/*decoding=*/false);
  schedule_waiting();
  DUNLIN_CHECK(!batch_.seqs.empty() || !has_work(), "the first sequence always advances");
  return batch_;
}

// running_ may lose sequences from its end on the way.
void Scheduler::schedule_running(bool decoding) {
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Sequence& seq = *running_[i];
    if ((seq.num_remaining() == 1) != decoding) continue;
    const ScheduledSequence scheduled = chunk_of(seq);
    if (scheduled.num_tokens == 0) continue;
    if (make_room(seq, scheduled.end())) append(scheduled);
  }
}

void Scheduler::schedule_waiting() {
  while (!waiting_.empty() && batch_.num_preempted == 0 && num_running() < config_.max_seqs &&
         batch_.num_tokens < config_.max_batch_tokens) {
    if (!try_admit()) return;
  }
}

// Moves the first waiting sequence to the running ones, or changes nothing.
bool Scheduler::try_admit() {
  Sequence& seq = *waiting_.front();
  if (!seq.has_kv) {
    seq.kv = kv_.make_sequence(seq.num_max_tokens(), !seq.echo_logprobs, seq.cache_salt);
    seq.has_kv = true;
  }
  const int growth = running_.empty() ? 0 : num_growth_blocks(seq);
  if (growth > kv_.num_free_blocks()) return false;
  const int hit_in_memory = kv_.match_prefix(seq.kv, seq.tokens);
  const int needed = kv_.num_new_blocks(seq.kv, seq.num_tokens(), config_.max_batch_tokens);
  if (needed + growth > kv_.num_free_blocks() || is_being_computed(seq, hit_in_memory) ||
      (disk_ != nullptr && !disk_->extend(seq, !running_.empty()))) {
    kv_.free(seq.kv);
    return false;
  }
  const int hit = seq.kv.num_computed_tokens();
  const ScheduledSequence scheduled = chunk_of(seq);
  if (scheduled.num_tokens == 0) {
    kv_.free(seq.kv);
    return false;
  }
  const bool fits = kv_.allocate(seq.kv, scheduled.end());
  DUNLIN_CHECK(fits, "a chunk takes no more than the whole");
  if (!seq.is_admitted) {
    seq.is_admitted = true;
    seq.stats.num_cached_tokens = hit;
    ++batch_.num_first_runs;
    if (!seq.echo_logprobs) batch_.num_prefix_queries += seq.num_tokens();
    batch_.num_prefix_hits += hit;
  }
  append(scheduled);
  std::unique_ptr<Sequence> admitted = std::move(waiting_.front());
  waiting_.erase(waiting_.begin());
  insert(running_, std::move(admitted));
  return true;
}

// Whether the block behind a hit is among what this step computes for another sequence. It ends,
// since each step brings that one past the block.
bool Scheduler::is_being_computed(const Sequence& seq, int num_hit_tokens) const {
  const int end = num_hit_tokens + kBlockSize;
  if (!kv_.has_prefix_cache() || seq.echo_logprobs || end >= seq.num_tokens()) return false;
  return std::any_of(batch_.seqs.begin(), batch_.seqs.end(), [&](const ScheduledSequence& s) {
    const Sequence& other = *s.seq;
    return s.begin < end && other.num_tokens() >= end && !other.echo_logprobs &&
           other.cache_salt == seq.cache_salt &&
           std::equal(seq.tokens.begin(), seq.tokens.begin() + end, other.tokens.begin());
  });
}

// A block a group for each that runs, doubled for each time that `seq` had to give way.
int Scheduler::num_growth_blocks(const Sequence& seq) const {
  const int doublings = std::min(seq.stats.num_preemptions, 6);
  return (kv_.num_groups() * num_running()) << doublings;
}

// What `seq` may compute within what the batch has left. num_tokens 0: nothing.
ScheduledSequence Scheduler::chunk_of(Sequence& seq) const {
  ScheduledSequence chunk;
  chunk.seq = &seq;
  chunk.begin = seq.kv.num_computed_tokens();
  chunk.num_prompt_tokens = seq.num_prompt_tokens;
  chunk.num_tokens = std::min(seq.num_remaining(), config_.max_batch_tokens - batch_.num_tokens);
  chunk.samples = chunk.end() == seq.num_tokens() && seq.sampling.max_tokens > 0;
  chunk.first_row = chunk.samples ? chunk.end() - 1 : chunk.end();
  if (!seq.echo_logprobs) return chunk;
  // Entry i of the prompt's log-probabilities comes from the row at i - 1. A row for each sequence
  // that may sample in this step stays out of reach.
  const int next_row = static_cast<int>(seq.prompt_logprobs.size()) - 1;
  if (next_row >= seq.num_prompt_tokens - 1) return chunk;
  const int rows_left =
      config_.max_logits_rows - config_.max_seqs - (batch_.num_rows - batch_.num_samples);
  chunk.first_row = std::max(chunk.begin, next_row);
  chunk.num_tokens = std::min(chunk.num_tokens, chunk.first_row - chunk.begin + rows_left);
  chunk.num_tokens = std::max(chunk.num_tokens, 0);
  chunk.samples = chunk.end() == seq.num_tokens() && seq.sampling.max_tokens > 0;
  chunk.first_row = std::min(chunk.first_row, chunk.end());
  return chunk;
}

// Allocates the slots up to num_tokens, at the cost of those that run last. False: `seq` was the
// last itself and waits now.
bool Scheduler::make_room(Sequence& seq, int num_tokens) {
  while (!kv_.allocate(seq.kv, num_tokens)) {
    DUNLIN_CHECK(running_.size() > 1, "a sequence that can't run alone was accepted");
    const bool was_last = running_.back().get() == &seq;
    preempt_last();
    if (was_last) return false;
  }
  return true;
}

void Scheduler::preempt_last() {
  std::unique_ptr<Sequence> seq = std::move(running_.back());
  running_.pop_back();
  unschedule(*seq);
  kv_.free(seq->kv);
  ++seq->stats.num_preemptions;
  ++batch_.num_preempted;
  insert(waiting_, std::move(seq));
}

void Scheduler::unschedule(const Sequence& seq) {
  const auto it = std::find_if(batch_.seqs.begin(), batch_.seqs.end(),
                               [&](const auto& s) { return s.seq == &seq; });
  if (it == batch_.seqs.end()) return;
  batch_.num_tokens -= it->num_tokens;
  batch_.num_rows -= it->num_rows();
  batch_.num_samples -= it->samples;
  batch_.seqs.erase(it);
}

void Scheduler::append(const ScheduledSequence& scheduled) {
  batch_.seqs.push_back(scheduled);
  batch_.num_tokens += scheduled.num_tokens;
  batch_.num_rows += scheduled.num_rows();
  batch_.num_samples += scheduled.samples;
}

KvWaste Scheduler::kv_waste() const {
  KvWaste waste;
  for (const auto& seq : running_) kv_.add_waste(seq->kv, waste);
  return waste;
}

void Scheduler::check_integrity() const {
  DUNLIN_CHECK(num_running() <= config_.max_seqs, "too many run");
  DUNLIN_CHECK(batch_.num_tokens <= config_.max_batch_tokens, "the step is over its budget");
  DUNLIN_CHECK(batch_.num_rows <= config_.max_logits_rows, "the step has too many rows");
  std::vector<const KvSequence*> held;
  for (const Queue* queue : {&running_, &waiting_}) {
    DUNLIN_CHECK(std::is_sorted(queue->begin(), queue->end(),
                                [](const auto& a, const auto& b) { return runs_before(*a, *b); }),
                 "a queue is out of order");
    for (const auto& seq : *queue) {
      if (!seq->has_kv) continue;
      DUNLIN_CHECK(queue == &running_ || seq->kv.num_held_blocks() == 0,
                   "a waiting sequence holds blocks");
      held.push_back(&seq->kv);
    }
  }
  kv_.check_integrity(held);
}

}  // namespace dunlin
