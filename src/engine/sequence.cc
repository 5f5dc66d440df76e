#include "engine/sequence.h"

#include <algorithm>
#include <utility>

namespace dunlin {

std::unique_ptr<Sequence> make_sequence(EngineRequest request, int vocab_size) {
  auto seq = std::make_unique<Sequence>();
  seq->submit_time = EngineClock::now();
  if (request.queue_timeout.count() > 0)
    seq->queue_deadline = seq->submit_time + request.queue_timeout;
  if (request.deadline.count() > 0) seq->deadline = seq->submit_time + request.deadline;
  seq->priority = request.priority;
  seq->tenant = request.tenant;
  seq->pooling = request.pooling;
  if (request.pooling == Pooling::kNone) {
    seq->sampling = std::move(request.sampling);
    seq->constraint = std::move(request.constraint);
    seq->echo_logprobs = request.echo_logprobs;
    seq->echo_start = request.echo_start;
    seq->on_prompt_logits = std::move(request.on_prompt_logits);
  } else {
    seq->sampling.max_tokens = 0;
  }
  seq->output = std::make_shared<OutputQueue>();
  seq->num_prompt_tokens = static_cast<int>(request.prompt.size());
  seq->stats.num_prompt_tokens = seq->num_prompt_tokens;
  seq->num_policy_prompt_tokens = request.num_policy_prompt_tokens > 0
                                      ? request.num_policy_prompt_tokens
                                      : seq->num_prompt_tokens;
  seq->tokens = std::move(request.prompt);
  seq->tokens.reserve(static_cast<std::size_t>(seq->num_max_tokens()));
  if (!seq->sampling.ignore_eos) seq->end_ids = std::move(request.eos_ids);
  seq->end_ids.insert(seq->end_ids.end(), seq->sampling.stop_token_ids.begin(),
                      seq->sampling.stop_token_ids.end());
  std::erase_if(seq->end_ids, [vocab_size](TokenId id) { return id < 0 || id >= vocab_size; });
  std::sort(seq->end_ids.begin(), seq->end_ids.end());
  if (has_penalties(seq->sampling)) {
    seq->counts = TokenCounts(seq->tokens, seq->sampling.max_tokens);
  }
  seq->cache_salt = CacheSalt(request.cache_salt);
  seq->kv_policy = request.kv_policy.value_or(KvPolicy{});
  if (seq->echo_logprobs) {
    seq->prompt_logprobs.reserve(seq->tokens.size());
    seq->prompt_logprobs.resize(static_cast<std::size_t>(std::max(seq->echo_start, 1)));
  }
  return seq;
}

PooledPositions pooled_positions(const Sequence& seq, int begin, int end) {
  switch (seq.pooling) {
    case Pooling::kMean: return {begin, end};
    case Pooling::kCls: return {begin, begin == 0 ? std::min(end, 1) : begin};
    case Pooling::kLast: return {end == seq.num_tokens() ? end - 1 : end, end};
    case Pooling::kNone: break;
  }
  return {begin, begin};
}

}  // namespace dunlin
