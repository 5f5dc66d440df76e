#include "engine/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace dunlin {

Scheduler::Scheduler(const SchedulerConfig& config, KvCacheManager& kv)
    : config_(config),
      kv_(kv),
      budget_(config.targets),
      shares_(config.tenant_shares),
      waiting_(config.policy, config.max_overtakes, shares_) {
  DUNLIN_CHECK(config.max_batch_tokens >= config.max_seqs, "each running sequence gets a token");
  DUNLIN_CHECK(config.max_logits_rows > config.max_seqs, "echo needs a row of its own");
  batch_.seqs.reserve(static_cast<std::size_t>(config.max_seqs));
  running_.reserve(static_cast<std::size_t>(config.max_seqs));
  prompts_.reserve(static_cast<std::size_t>(config.max_seqs));
  batch_.forks.reserve(static_cast<std::size_t>(config.max_seqs));
}

Scheduler::~Scheduler() {
  while (has_work()) remove(any_id());
}

void Scheduler::add(std::unique_ptr<Sequence> seq) {
  shares_.enter(seq->tenant);
  next_expiry_ = std::min(next_expiry_, seq->expiry());
  waiting_.insert(std::move(seq));
}

std::unique_ptr<Sequence> Scheduler::remove(RequestId id) {
  const auto it = std::find_if(running_.begin(), running_.end(),
                               [id](const auto& seq) { return seq->id == id; });
  std::unique_ptr<Sequence> seq = it == running_.end()
                                      ? waiting_.remove(id)
                                      : stop(static_cast<std::size_t>(it - running_.begin()));
  if (seq == nullptr) return nullptr;
  kv_.free(seq->kv);
  shares_.leave(seq->tenant);
  return seq;
}

RequestId Scheduler::any_id() const {
  if (!running_.empty()) return running_.back()->id;
  return waiting_.empty() ? 0 : waiting_.seqs().back()->id;
}

const Sequence* Scheduler::find_expired(EngineClock::time_point now) {
  if (now < next_expiry_) return nullptr;
  next_expiry_ = EngineClock::time_point::max();
  for (const auto* seqs : {&std::as_const(running_), &waiting_.seqs()}) {
    for (const auto& seq : *seqs) {
      next_expiry_ = std::min(next_expiry_, seq->expiry());
      if (seq->expiry() <= now) return seq.get();
    }
  }
  return nullptr;
}

void Scheduler::run(std::unique_ptr<Sequence> seq) {
  seq->is_running = true;
  shares_.note_running(seq->tenant, 1);
  const auto behind =
      std::upper_bound(running_.begin(), running_.end(), seq,
                       [](const auto& a, const auto& b) { return runs_before(*a, *b); });
  running_.insert(behind, std::move(seq));
}

std::unique_ptr<Sequence> Scheduler::stop(std::size_t running_idx) {
  std::unique_ptr<Sequence> seq = std::move(running_[running_idx]);
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(running_idx));
  seq->is_running = false;
  shares_.note_running(seq->tenant, -1);
  return seq;
}

const ScheduledBatch& Scheduler::schedule(EngineClock::time_point now) {
  batch_.seqs.clear();
  batch_.forks.clear();
  batch_.num_tokens = batch_.num_rows = batch_.num_samples = 0;
  batch_.num_first_runs = batch_.num_preempted = 0;
  batch_.num_prefix_queries = batch_.num_prefix_hits = 0;
  batch_.work = {};
  is_out_of_blocks_ = false;
  if (disk_ != nullptr) disk_->begin_step();
  yield_slot();
  schedule_decodes();
  begin_budget(now);
  schedule_prompts();
  while (admit_next()) {
  }
  fork_choices();
  for (const ScheduledSequence& s : batch_.seqs) {
    if (s.is_decode()) {
      ++batch_.work.num_decode_tokens;
    } else {
      batch_.work.add_prompt(s.begin, s.num_tokens);
    }
  }
  DUNLIN_CHECK(!batch_.seqs.empty() || !has_work(), "the first sequence always advances");
  return batch_;
}

void Scheduler::yield_slot() {
  if (shares_.num_tenants() == 1 || waiting_.empty() || num_running() < config_.max_seqs) return;
  const int needy = waiting_.next_tenant();
  double most = shares_.slot_load(needy, 1);
  std::size_t yielding = running_.size();
  for (std::size_t i = running_.size(); i-- > 0;) {
    const Sequence& seq = *running_[i];
    if (seq.num_yields >= kMaxYields || shares_.served(seq.tenant) <= shares_.served(needy) ||
        shares_.slot_load(seq.tenant, 0) <= most) {
      continue;
    }
    most = shares_.slot_load(seq.tenant, 0);
    yielding = i;
  }
  if (yielding == running_.size()) return;
  ++running_[yielding]->num_yields;
  preempt(yielding);
}

void Scheduler::schedule_decodes() {
  // running_ may lose sequences from its end on the way.
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Sequence& seq = *running_[i];
    if (seq.num_remaining() != 1) continue;
    const ScheduledSequence scheduled = chunk_of(seq);
    if (scheduled.num_tokens > 0 && make_room(seq, scheduled.end())) append(scheduled);
  }
}

// Tells the budget who decodes in this step, and which prompts are to come.
void Scheduler::begin_budget(EngineClock::time_point now) {
  budget_.begin(static_cast<int>(batch_.seqs.size()));
  if (!budget_.wants_prompts()) return;
  for (const auto* seqs : {&std::as_const(running_), &waiting_.seqs()}) {
    for (const auto& seq : *seqs) {
      if (seq->num_output_tokens() > 0 || seq->num_remaining() <= 1) continue;
      const double age_s = std::chrono::duration<double>(now - seq->submit_time).count();
      budget_.expect_prompt(seq->kv.num_computed_tokens(), seq->num_remaining(), age_s);
    }
  }
}

void Scheduler::schedule_prompts() {
  prompts_.clear();
  for (const auto& seq : running_) {
    if (seq->num_remaining() > 1) prompts_.push_back(seq.get());
  }
  if (shares_.num_tenants() > 1) {
    std::sort(prompts_.begin(), prompts_.end(), [this](const Sequence* a, const Sequence* b) {
      const double served_a = shares_.served(a->tenant), served_b = shares_.served(b->tenant);
      return served_a != served_b ? served_a < served_b : runs_before(*a, *b);
    });
  }
  for (Sequence* seq : prompts_) {
    // Otherwise a tenant's long prompt would keep the others waiting to its end.
    while (shares_.num_tenants() > 1 && !waiting_.empty() &&
           shares_.served(waiting_.next_tenant()) < shares_.served(seq->tenant) && admit_next()) {
    }
    if (!seq->is_running) continue;  // gave its blocks to one before it
    const ScheduledSequence scheduled = chunk_of(*seq);
    if (scheduled.num_tokens > 0 && make_room(*seq, scheduled.end())) append(scheduled);
  }
}

// False: none waits, or the one whose turn it is can't run yet.
bool Scheduler::admit_next() {
  if (is_out_of_blocks_ || num_running() >= config_.max_seqs ||
      batch_.num_tokens >= config_.max_batch_tokens) {
    return false;
  }
  Sequence* seq = waiting_.next([this](Sequence& candidate) { return num_cached(candidate); });
  return seq != nullptr && try_admit(*seq);
}

void Scheduler::make_kv(Sequence& seq) {
  if (seq.has_kv) return;
  seq.kv = kv_.make_sequence(seq.num_max_tokens(), seq.uses_prefix_cache(), seq.cache_salt,
                             seq.kv_policy, seq.num_policy_prompt_tokens);
  seq.has_kv = true;
}

int Scheduler::num_cached(Sequence& seq) {
  make_kv(seq);
  const int hit = kv_.match_prefix(seq.kv, seq.cacheable_tokens());
  kv_.free(seq.kv);
  return hit;
}

// Moves a waiting sequence to the running ones, or changes nothing.
bool Scheduler::try_admit(Sequence& seq) {
  if (waits_for_choice(seq)) return false;
  make_kv(seq);
  const int growth = running_.empty() ? 0 : num_growth_blocks(seq);
  if (growth > kv_.num_free_blocks()) return false;
  const int hit_in_memory = kv_.match_prefix(seq.kv, seq.cacheable_tokens());
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
    if (seq.uses_prefix_cache())
      batch_.num_prefix_queries += static_cast<int>(seq.cacheable_tokens().size());
    batch_.num_prefix_hits += hit;
  }
  append(scheduled);
  run(waiting_.admit(seq));
  return true;
}

// Whether another choice over the prompt is computing it, or there are no slots for all of them.
bool Scheduler::waits_for_choice(const Sequence& seq) const {
  if (seq.group == 0 || seq.is_admitted) return false;
  const bool is_computed_now = std::any_of(running_.begin(), running_.end(), [&](const auto& s) {
    return s->group == seq.group && s->num_output_tokens() == 0;
  });
  const int num_choices = std::min(waiting_.num_in_group(seq.group), config_.max_seqs);
  return is_computed_now || num_running() + num_choices > config_.max_seqs;
}

// Choices join the one that computes the end of their prompt in this step. Before others that wait,
// since they need no more of the step; but nobody is overtaken more often than it may be.
void Scheduler::fork_choices() {
  int end_row = 0;
  for (const ScheduledSequence& s : batch_.seqs) {
    end_row += s.num_rows();
    if (s.seq->group == 0 || !s.samples || s.seq->num_output_tokens() > 0) continue;
    while (Sequence* choice = waiting_.next_in_group(s.seq->group)) {
      if (!may_join(*choice)) break;
      make_kv(*choice);
      choice->is_admitted = true;
      ++batch_.num_first_runs;
      batch_.forks.push_back({choice, s.seq, end_row - 1});
      run(waiting_.admit(*choice));
    }
  }
}

bool Scheduler::may_join(const Sequence& seq) const {
  return !is_out_of_blocks_ && num_running() < config_.max_seqs && waiting_.may_overtake(seq) &&
         num_growth_blocks(seq) + kv_.num_groups() <= kv_.num_free_blocks();
}

// Whether the block behind a hit is among what this step computes for another sequence. It ends,
// since each step brings that one past the block.
bool Scheduler::is_being_computed(const Sequence& seq, int num_hit_tokens) const {
  const int end = num_hit_tokens + kBlockSize;
  if (!kv_.has_prefix_cache() || !seq.uses_prefix_cache() || end > seq.kv.num_exact_tokens() ||
      end >= std::ssize(seq.cacheable_tokens())) {
    return false;
  }
  return std::any_of(batch_.seqs.begin(), batch_.seqs.end(), [&](const ScheduledSequence& s) {
    const Sequence& other = *s.seq;
    return s.begin < end && other.num_tokens() >= end && other.uses_prefix_cache() &&
           other.kv.num_exact_tokens() >= end && other.cache_salt == seq.cache_salt &&
           std::equal(seq.tokens.begin(), seq.tokens.begin() + end, other.tokens.begin());
  });
}

// A block a group for each that runs, doubled for each time that `seq` lost its blocks.
int Scheduler::num_growth_blocks(const Sequence& seq) const {
  const int doublings = std::min(seq.stats.num_preemptions - seq.num_yields, 6);
  return (kv_.num_groups() * num_running()) << doublings;
}

// What `seq` may compute within what the batch has left. num_tokens 0: nothing.
ScheduledSequence Scheduler::chunk_of(Sequence& seq) const {
  ScheduledSequence chunk;
  chunk.seq = &seq;
  chunk.begin = seq.kv.num_computed_tokens();
  chunk.num_prompt_tokens = seq.num_prompt_tokens;
  chunk.num_tokens = std::min(seq.num_remaining(), config_.max_batch_tokens - batch_.num_tokens);
  if (chunk.num_tokens > 1) {
    chunk.num_tokens = std::min(chunk.num_tokens, budget_.num_tokens_left(chunk.begin));
  }
  const int step_end = seq.kv_policy.step_end(chunk.begin, seq.num_policy_prompt_tokens);
  chunk.num_tokens = std::min(chunk.num_tokens, step_end - chunk.begin);
  if (config_.whole_sequences && chunk.num_tokens < seq.num_remaining()) chunk.num_tokens = 0;
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
    is_out_of_blocks_ = true;
    const bool was_last = running_.back().get() == &seq;
    preempt(running_.size() - 1);
    if (was_last) return false;
  }
  return true;
}

void Scheduler::preempt(std::size_t running_idx) {
  std::unique_ptr<Sequence> seq = stop(running_idx);
  unschedule(*seq);
  kv_.free(seq->kv);
  ++seq->stats.num_preemptions;
  ++batch_.num_preempted;
  waiting_.insert(std::move(seq));
}

void Scheduler::unschedule(const Sequence& seq) {
  const auto it = std::find_if(batch_.seqs.begin(), batch_.seqs.end(),
                               [&](const auto& s) { return s.seq == &seq; });
  if (it == batch_.seqs.end()) return;
  shares_.charge(seq.tenant, -it->num_tokens);
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
  shares_.charge(scheduled.seq->tenant, scheduled.num_tokens);
  if (!scheduled.is_decode()) budget_.spend(scheduled.begin, scheduled.num_tokens);
}

KvWaste Scheduler::kv_waste() const {
  KvWaste waste;
  for (const auto& seq : running_) kv_.add_waste(seq->kv, waste);
  return waste;
}

std::array<KvPolicyUse, kNumKvPolicies> Scheduler::kv_policies() const {
  std::array<KvPolicyUse, kNumKvPolicies> uses{};
  for (const auto& seq : running_) {
    KvPolicyUse& use = uses[static_cast<std::size_t>(seq->kv_policy.type)];
    ++use.num_running;
    use.num_held_blocks += seq->kv.num_held_blocks();
  }
  return uses;
}

void Scheduler::check_integrity() const {
  DUNLIN_CHECK(num_running() <= config_.max_seqs, "too many run");
  DUNLIN_CHECK(batch_.num_tokens <= config_.max_batch_tokens, "the step is over its budget");
  DUNLIN_CHECK(batch_.num_rows + static_cast<int>(batch_.forks.size()) <= config_.max_logits_rows,
               "the step has too many rows");
  DUNLIN_CHECK(std::is_sorted(running_.begin(), running_.end(),
                              [](const auto& a, const auto& b) { return runs_before(*a, *b); }),
               "the running ones are out of order");
  waiting_.check_integrity();
  std::vector<const KvSequence*> held;
  for (const auto& seq : running_) held.push_back(&seq->kv);
  for (const auto& seq : waiting_.seqs()) {
    if (!seq->has_kv) continue;
    DUNLIN_CHECK(seq->kv.num_held_blocks() == 0, "a waiting sequence holds blocks");
    held.push_back(&seq->kv);
  }
  kv_.check_integrity(held);
}

}  // namespace dunlin
