// Sequence: one accepted request. Built by the submitting thread, handed over through the request
// queue, and from then on the engine thread's alone.
//
// There is no prefill and no decode state: `tokens` is what is known, kv.num_computed_tokens() what
// is in the KV cache, and each step brings the second closer to the first. When they meet, the
// last row of logits gives a new token.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "engine/output_queue.h"
#include "engine/request.h"
#include "kv/kv_cache_manager.h"
#include "kv/prefix_key.h"
#include "sampling/logits_processors.h"

namespace dunlin {

using EngineClock = std::chrono::steady_clock;

struct Sequence {
  RequestId id = 0;
  std::uint64_t arrival = 0;  // ascending with submit
  int priority = 0;           // 0 where the policy knows none
  int tenant = 0;
  RequestId group = 0;  // choices over one prompt have the same; 0: it is alone
  SamplingParams sampling;
  std::shared_ptr<TokenConstraint> constraint;
  std::shared_ptr<OutputQueue> output;

  std::vector<TokenId> tokens;  // prompt and output; room for all that may come
  int num_prompt_tokens = 0;
  int num_policy_prompt_tokens = 0;  // of them, what kv_policy takes for the prompt
  std::vector<TokenId> end_ids;  // ascending: end of generation (unless ignored), stop token ids
  TokenCounts counts;            // kept where the penalties want it

  Pooling pooling = Pooling::kNone;
  std::vector<double> pooled;  // [hidden_size] what has been pooled so far

  bool echo_logprobs = false;
  int echo_start = 0;
  std::function<void(int position, std::span<const float> logits)> on_prompt_logits;
  std::vector<TokenLogprobs> prompt_logprobs;  // so far; moves out with the first output

  CacheSalt cache_salt;
  KvPolicy kv_policy;
  std::vector<PrefixKey> block_keys;  // of the full blocks so far, where there is a disk tier
  KvSequence kv;
  bool has_kv = false;       // kv is made at the first try to run
  bool is_admitted = false;  // has run before; if it waits now, it was preempted
  bool is_running = false;
  int num_overtaken = 0;  // by later ones, while it waited
  bool is_due = false;    // was overtaken as often as may be
  int num_yields = 0;     // times that it left its slot to another tenant

  RequestStats stats;
  EngineClock::time_point submit_time;
  EngineClock::time_point queue_deadline = EngineClock::time_point::max();
  EngineClock::time_point deadline = EngineClock::time_point::max();
  EngineClock::time_point first_scheduled_time;
  EngineClock::time_point first_token_time;
  EngineClock::time_point last_token_time;

  // Not where something of every prompt token is wanted.
  bool uses_prefix_cache() const {
    return (!echo_logprobs || echo_start > 1) &&
           (pooling == Pooling::kNone || pooling == Pooling::kLast);
  }
  // All but the last of these may come from the prefix cache: of what follows, logits are wanted.
  std::span<const TokenId> cacheable_tokens() const {
    const std::size_t num_known = tokens.size();
    return std::span(tokens).first(echo_logprobs ? std::min(prompt_logprobs.size(), num_known)
                                                 : num_known);
  }

  int num_tokens() const { return static_cast<int>(tokens.size()); }
  int num_output_tokens() const { return num_tokens() - num_prompt_tokens; }
  int num_max_tokens() const { return num_prompt_tokens + sampling.max_tokens; }
  int num_remaining() const { return num_tokens() - kv.num_computed_tokens(); }
  // When its time is over, as things are.
  EngineClock::time_point expiry() const {
    return is_admitted ? deadline : std::min(deadline, queue_deadline);
  }
};

// A checked request as a sequence, submitted now. Makes room for all of its tokens, so that later
// steps don't allocate.
std::unique_ptr<Sequence> make_sequence(EngineRequest request, int vocab_size);

// Positions whose hidden states are pooled, of those in [begin, end) that a step computes.
struct PooledPositions {
  int begin = 0, end = 0;
};
PooledPositions pooled_positions(const Sequence& seq, int begin, int end);

// Who runs first, and who is preempted last.
inline bool runs_before(const Sequence& a, const Sequence& b) {
  return std::tuple(!a.is_due, a.priority, a.arrival) <
         std::tuple(!b.is_due, b.priority, b.arrival);
}

}  // namespace dunlin
