#include "engine/engine_core.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace dunlin {
namespace {

double seconds(EngineClock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Why a sequence without output is given up.
Status timeout_error(const Sequence& seq, TimeLimit limit) {
  const auto ms = [&seq](EngineClock::time_point end) {
    return 1e3 * seconds(end - seq.submit_time);
  };
  return Status(StatusCode::kUnavailable,
                limit == TimeLimit::kQueue
                    ? fmt::format("the request waited {:.0f} ms for its turn, the longest it may; "
                                  "try again later",
                                  ms(seq.queue_deadline))
                    : fmt::format("the request's {:.0f} ms were over before its first token; try "
                                  "again later, or give it more time",
                                  ms(seq.deadline)));
}

TokenOutput end_output(FinishReason reason) {
  TokenOutput output;
  output.finish = reason;
  return output;
}

TokenOutput error_output(std::string message) {
  TokenOutput output = end_output(FinishReason::kError);
  output.error = Status(StatusCode::kInternal, std::move(message));
  return output;
}

SchedulerConfig scheduler_config_of(const EngineConfig& config, const ModelLimits& limits) {
  return {.max_seqs = config.max_seqs,
          .max_batch_tokens = config.max_batch_tokens,
          .max_logits_rows = max_logits_rows(config),
          .whole_sequences = limits.is_encoder,
          .policy = config.schedule,
          .max_overtakes = config.max_overtakes,
          .tenant_shares = config.tenant_shares,
          .targets = {config.target_itl_ms / 1e3, config.target_ttft_ms / 1e3}};
}

}  // namespace

EngineCore::EngineCore(std::unique_ptr<Model> model, const EngineConfig& config,
                       std::int32_t num_blocks, DiskTier* disk)
    : config_(config),
      // An encoder's keys and values depend on the whole text, not on what is in front of them.
      kv_(model->kv_layout(), num_blocks, config.prefix_cache && !model->limits().is_encoder),
      scheduler_config_(scheduler_config_of(config, model->limits())),
      scheduler_(scheduler_config_, kv_),
      builder_(scheduler_config_, kv_.num_groups(), config.max_context),
      runner_(std::move(model), num_blocks, scheduler_config_),
      sampler_(runner_, config.max_seqs),
      disk_(disk) {
  if (disk != nullptr) {
    disk_prefixes_.emplace(*disk, kv_, runner_.storage());
    scheduler_.use_disk(*disk_prefixes_);
  }
  finished_.reserve(static_cast<std::size_t>(config.max_seqs));
}

void EngineCore::step() {
  const auto start = EngineClock::now();
  const ScheduledBatch& scheduled = scheduler_.schedule(start);
  const auto note_start = [start](Sequence& seq) {
    if (seq.first_scheduled_time != EngineClock::time_point{}) return;
    seq.first_scheduled_time = start;
    seq.stats.queue_time_s = seconds(start - seq.submit_time);
  };
  for (const ScheduledSequence& s : scheduled.seqs) note_start(*s.seq);
  for (const ScheduledFork& fork : scheduled.forks) note_start(*fork.seq);
  const StepRows rows = runner_.run(kv_.copies(), builder_.build(scheduled),
                                    static_cast<int>(scheduled.forks.size()));
  kv_.clear_copies();
  now_ = EngineClock::now();
  commit(scheduled, rows);
  note_step(scheduled, seconds(now_ - start));
  scheduler_.note_step_time(seconds(EngineClock::now() - start));
}

// Everybody's blocks first: a fork takes those of a sequence that may end in this step.
void EngineCore::commit(const ScheduledBatch& scheduled, const StepRows& rows) {
  const auto vocab_size = static_cast<std::size_t>(runner_.limits().vocab_size);
  const std::span<SampledToken> sampled = sampler_.sample(scheduled, rows);
  const auto hidden_size = static_cast<std::size_t>(runner_.limits().hidden_size);
  std::size_t first = 0, num_taken = 0, first_hidden = 0;
  for (const ScheduledSequence& s : scheduled.seqs) {
    commit_tokens(s);
    const PooledPositions pooled = pooled_positions(*s.seq, s.begin, s.end());
    const std::size_t num_hidden =
        static_cast<std::size_t>(pooled.end - pooled.begin) * hidden_size;
    if (s.seq->pooling != Pooling::kNone)
      pool_hidden(s, rows.hidden.subspan(first_hidden, num_hidden));
    first_hidden += num_hidden;
    const std::size_t num_logits = static_cast<std::size_t>(s.num_rows()) * vocab_size;
    // The row that was drawn from scores no prompt token: it is behind the last of them.
    if (s.seq->echo_logprobs) score_prompt(s, rows.values.subspan(first, num_logits));
    first += num_logits;
  }
  for (const ScheduledFork& fork : scheduled.forks) commit_fork(fork);
  for (const ScheduledSequence& s : scheduled.seqs) {
    if (s.samples) {
      accept(*s.seq, sampled[num_taken++]);
    } else if (s.end() == s.seq->num_tokens()) {
      finish_prompt(*s.seq);
    }
  }
  for (const ScheduledFork& fork : scheduled.forks) accept(*fork.seq, sampled[num_taken++]);
  finished_.clear();
}

void EngineCore::commit_tokens(const ScheduledSequence& s) {
  Sequence& seq = *s.seq;
  if (disk_prefixes_) disk_prefixes_->save(seq, s.end());
  kv_.commit(seq.kv, seq.tokens, s.end());
  seq.stats.num_chunks += s.begin < s.num_prompt_tokens;
}

void EngineCore::commit_fork(const ScheduledFork& fork) {
  Sequence& seq = *fork.seq;
  seq.kv = kv_.fork(fork.source->kv, seq.num_max_tokens());
  seq.stats.num_cached_tokens = fork.source->stats.num_cached_tokens;
  seq.prompt_logprobs = fork.source->prompt_logprobs;
}

void EngineCore::pool_hidden(const ScheduledSequence& s, std::span<const float> hidden) {
  Sequence& seq = *s.seq;
  const auto hidden_size = static_cast<std::size_t>(runner_.limits().hidden_size);
  // The first step, or the first after a preemption.
  if (s.begin == 0 || seq.pooled.empty()) seq.pooled.assign(hidden_size, 0);
  for (std::size_t i = 0; i < hidden.size(); ++i) seq.pooled[i % hidden_size] += hidden[i];
}

// The end of a request that wanted no token: an embedding, or the prompt's log-probabilities.
void EngineCore::finish_prompt(const Sequence& seq) {
  if (seq.pooling == Pooling::kNone) return finish(seq, end_output(FinishReason::kLength));
  const double count = seq.pooling == Pooling::kMean ? seq.num_tokens() : 1;
  TokenOutput output = end_output(FinishReason::kStop);
  output.embedding.reserve(seq.pooled.size());
  bool is_finite = true;
  for (const double sum : seq.pooled) {
    output.embedding.push_back(static_cast<float>(sum / count));
    is_finite = is_finite && std::isfinite(output.embedding.back());
  }
  if (!is_finite)
    return finish(seq, error_output("the model gave a hidden state that is no finite number"));
  finish(seq, std::move(output));
}

void EngineCore::score_prompt(const ScheduledSequence& s, std::span<const float> rows) {
  Sequence& seq = *s.seq;
  const auto vocab_size = static_cast<std::size_t>(runner_.limits().vocab_size);
  for (int position = s.first_row; position < s.end(); ++position) {
    if (position + 1 >= seq.num_prompt_tokens) return;
    DUNLIN_CHECK(seq.prompt_logprobs.size() == static_cast<std::size_t>(position) + 1,
                 "prompt tokens are scored in order");
    const auto row =
        rows.subspan(static_cast<std::size_t>(position - s.first_row) * vocab_size, vocab_size);
    if (seq.on_prompt_logits) seq.on_prompt_logits(position + 1, row);
    seq.prompt_logprobs.push_back(
        compute_logprobs(row, seq.tokens[static_cast<std::size_t>(position) + 1],
                         seq.sampling.num_logprobs, candidates_));
  }
}

void EngineCore::accept(Sequence& seq, SampledToken& sampled) {
  const std::optional<TokenId> token = sampled.token;
  if (!token) {
    finish(seq, error_output("no token may come next: the model gave no finite logit, or every "
                             "token is masked"));
    return;
  }
  if (seq.constraint != nullptr) seq.constraint->accept(*token);
  if (has_penalties(seq.sampling)) seq.counts.add(*token);
  seq.tokens.push_back(*token);
  note_token(seq);

  TokenOutput output;
  output.token = *token;
  if (seq.sampling.num_logprobs >= 0) output.logprobs = std::move(sampled.logprobs);
  output.finish = finish_reason(seq, *token);
  const FinishReason reason = output.finish;
  if (reason != FinishReason::kNone) {
    seq.stats.total_time_s = seconds(now_ - seq.submit_time);
    note_finish(seq, reason);
  }
  push(seq, std::move(output));
  if (reason != FinishReason::kNone) finished_.push_back(scheduler_.remove(seq.id));
}

FinishReason EngineCore::finish_reason(const Sequence& seq, TokenId token) const {
  if (std::binary_search(seq.end_ids.begin(), seq.end_ids.end(), token)) {
    return FinishReason::kStop;
  }
  if (seq.num_output_tokens() >= seq.sampling.max_tokens ||
      seq.num_tokens() >= max_tokens_of(seq.kv_policy, config_, runner_.limits())) {
    return FinishReason::kLength;
  }
  return FinishReason::kNone;
}

void EngineCore::push(Sequence& seq, TokenOutput output) {
  if (!seq.prompt_logprobs.empty() && seq.num_output_tokens() <= 1) {
    output.prompt_logprobs = std::exchange(seq.prompt_logprobs, {});
    seq.echo_logprobs = false;
  }
  seq.stats.num_output_tokens = seq.num_output_tokens();
  output.stats = seq.stats;
  seq.output->push(std::move(output));
}

// Ends a running sequence without a token.
void EngineCore::finish(const Sequence& seq, TokenOutput output) {
  std::unique_ptr<Sequence> taken = scheduler_.remove(seq.id);
  tell_end(*taken, std::move(output));
  finished_.push_back(std::move(taken));
}

void EngineCore::tell_end(Sequence& seq, TokenOutput output) {
  seq.stats.total_time_s = seconds(EngineClock::now() - seq.submit_time);
  note_finish(seq, output.finish);
  push(seq, std::move(output));
}

void EngineCore::abort(RequestId id) {
  const std::unique_ptr<Sequence> seq = scheduler_.remove(id);
  if (seq != nullptr) tell_end(*seq, end_output(FinishReason::kCancelled));
}

void EngineCore::expire(EngineClock::time_point now) {
  now_ = now;
  while (const Sequence* expired = scheduler_.find_expired(now)) {
    const std::unique_ptr<Sequence> seq = scheduler_.remove(expired->id);
    const TimeLimit limit = now < seq->deadline ? TimeLimit::kQueue : TimeLimit::kDeadline;
    ++stats_.timed_out;
    TokenOutput output = end_output(FinishReason::kLength);
    output.ended_by = limit;
    if (seq->num_output_tokens() == 0) {
      output.finish = FinishReason::kError;
      output.error = timeout_error(*seq, limit);
    }
    tell_end(*seq, std::move(output));
  }
}

PrefixCacheReset EngineCore::reset_prefix_cache() {
  if (disk_ != nullptr) disk_->clear();
  return kv_.reset_prefix_cache();
}

void EngineCore::abort_all() {
  while (scheduler_.has_work()) abort(scheduler_.any_id());
}

void EngineCore::note_token(Sequence& seq) {
  EngineHistograms& histograms = stats_.histograms;
  ++stats_.num_generated_tokens;
  if (seq.num_output_tokens() == 1) {
    seq.first_token_time = now_;
    seq.stats.first_token_time_s = seconds(now_ - seq.submit_time);
    histograms.time_to_first_token.observe(seq.stats.first_token_time_s);
    histograms.prefill.observe(seconds(now_ - seq.first_scheduled_time));
  } else {
    histograms.inter_token.observe(seconds(now_ - seq.last_token_time));
  }
  seq.last_token_time = now_;
}

void EngineCore::note_finish(const Sequence& seq, FinishReason reason) {
  ++num_finished_;
  num_left_queue_ += !seq.is_admitted;
  switch (reason) {
    case FinishReason::kStop: ++stats_.finished_stop; break;
    case FinishReason::kLength: ++stats_.finished_length; break;
    case FinishReason::kCancelled: ++stats_.finished_cancelled; return;
    case FinishReason::kError: ++stats_.finished_error; return;
    case FinishReason::kNone: DUNLIN_CHECK(false, "a finish has a reason");
  }
  EngineHistograms& histograms = stats_.histograms;
  const int num_output = seq.num_output_tokens();
  histograms.e2e.observe(seq.stats.total_time_s);
  histograms.queue.observe(seq.stats.queue_time_s);
  histograms.inference.observe(seq.stats.total_time_s - seq.stats.queue_time_s);
  histograms.prompt_tokens.observe(seq.num_prompt_tokens);
  histograms.computed_prompt_tokens.observe(seq.num_prompt_tokens - seq.stats.num_cached_tokens);
  histograms.generated_tokens.observe(num_output);
  if (num_output == 0) return;
  const double decode = seconds(now_ - seq.first_token_time);
  histograms.decode.observe(decode);
  if (num_output > 1) histograms.time_per_output_token.observe(decode / (num_output - 1));
}

void EngineCore::note_step(const ScheduledBatch& scheduled, double seconds_taken) {
  ++stats_.num_steps;
  stats_.num_preemptions += static_cast<std::uint64_t>(scheduled.num_preempted);
  stats_.prefix_queries += static_cast<std::uint64_t>(scheduled.num_prefix_queries);
  stats_.prefix_hits += static_cast<std::uint64_t>(scheduled.num_prefix_hits);
  num_left_queue_ += scheduled.num_first_runs;
  int num_prefill = 0;
  for (const ScheduledSequence& s : scheduled.seqs) {
    stats_.num_prompt_tokens +=
        static_cast<std::uint64_t>(std::max(0, std::min(s.end(), s.num_prompt_tokens) - s.begin));
    // The one token of a step that only continues an output is decode, all else is prefill.
    if (s.num_tokens > 1 || s.begin < s.num_prompt_tokens) num_prefill += s.num_tokens;
  }
  const double share = static_cast<double>(num_prefill) / std::max(1, scheduled.num_tokens);
  if (disk_prefixes_) disk_prefixes_->note_prefill(num_prefill, seconds_taken * share);
  stats_.prefill_time_s += seconds_taken * share;
  stats_.decode_time_s += seconds_taken * (1 - share);
  stats_.histograms.step_tokens.observe(scheduled.num_tokens);
}

const EngineStats& EngineCore::stats() {
  stats_.num_running = scheduler_.num_running();
  stats_.num_waiting = scheduler_.num_waiting();
  stats_.num_blocks = kv_.num_blocks();
  stats_.num_free_blocks = kv_.num_free_blocks();
  stats_.num_cached_blocks = kv_.num_cached_blocks();
  stats_.kv_waste = scheduler_.kv_waste();
  stats_.kv_policies = scheduler_.kv_policies();
  stats_.model = runner_.counters();
  return stats_;
}

}  // namespace dunlin
