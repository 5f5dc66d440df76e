// The engine: many requests in, tokens out, one batch a step. One engine thread runs
// schedule -> run -> commit until there is nothing to do, then sleeps without using CPU.
//
// Thread-safe: submit, abort, stats, shutdown. submit and abort are the only ways in.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "dunlin/status.h"
#include "dunlin/types.h"
#include "engine/request.h"
#include "engine/schedule_policy.h"
#include "kv/disk_tier.h"
#include "kv/kv_cache_manager.h"
#include "kv/kv_policy.h"
#include "model/model.h"

namespace dunlin {

// Where blocks of the prefix cache are kept in files (kv/disk_tier.h).
struct PrefixDiskConfig {
  std::string dir;  // "": nowhere
  std::int64_t max_bytes = std::int64_t{8} << 30;
  PrefixKey identity{};                                 // of the model (frontend/kv_identity.h)
  std::function<void(const std::string& line)> warn{};  // any thread; may be empty
};

// Of the KV arena where nobody says how large it may be.
inline constexpr std::int64_t kDefaultKvBytes = std::int64_t{512} << 20;

struct EngineConfig {
  int max_context =
      0;              // tokens a sequence may hold, prompt and output; 0: the model's, or what fits
  int max_seqs = 64;  // sequences running at once
  int max_batch_tokens = 512;  // token budget of a step; raised to max_seqs where it is less
  int max_scored_tokens = 32;  // prompt tokens of a step that echo_logprobs scores
  SchedulePolicy schedule = SchedulePolicy::kPriority;
  int max_overtakes = 64;  // times that a waiting request may be overtaken by later ones
  // Share of each tenant in the computed tokens while several have requests; empty: one tenant.
  std::vector<double> tenant_shares{};
  // For requests that name none, and the most that one may name; 0: none.
  std::chrono::milliseconds queue_timeout{0};
  std::chrono::milliseconds request_timeout{0};
  // Where set, a step takes fewer prompt tokens if that is needed to keep them (step_budget.h).
  double target_itl_ms = 0;   // between two tokens of a stream; 0: no target
  double target_ttft_ms = 0;  // arrival to first token; 0: no target
  int max_queue = 512;        // requests waiting; beyond it submit answers kResourceExhausted
  // Size of the KV arena. 0: what max_seqs full contexts need, but no more than kDefaultKvBytes.
  std::int64_t kv_bytes = 0;
  bool prefix_cache = true;
  KvPolicy kv_policy{};  // of requests that name none
  PrefixDiskConfig prefix_disk{};

  int num_tenants() const { return std::max(1, static_cast<int>(tenant_shares.size())); }
};

// Longest text under a policy that gives tokens back, where the model's positions are open.
inline constexpr int kMaxOpenContext = 1 << 20;

// Tokens that a request of this policy may have, prompt and output.
inline int max_tokens_of(const KvPolicy& policy, const EngineConfig& config,
                         const ModelLimits& limits) {
  return policy.gives_back() && limits.has_open_positions ? kMaxOpenContext : config.max_context;
}

// The reading end of one request's outputs; destroying it aborts the request.
// Thread-safe against the engine; one reader at a time.
class TokenStream {
 public:
  virtual ~TokenStream() = default;
  virtual RequestId id() const = 0;
  // The next output without waiting; nullopt where there is none yet. After an output whose
  // finish is not kNone there are no more.
  virtual std::optional<TokenOutput> poll() = 0;
  // Waits up to `timeout` for the next output.
  virtual std::optional<TokenOutput> wait(std::chrono::milliseconds timeout) = 0;
  // `notify` is called from the engine thread after an output was added; it must be quick (post
  // to an executor) and must not destroy the stream. It may poll. Called at once, by the caller,
  // where outputs are already there; not called any more once the stream is destroyed.
  virtual void on_ready(std::function<void()> notify) = 0;
};

// One observation a request, but for inter_token (one a token after the first) and step_tokens
// (one a step). Times in seconds.
struct EngineHistograms {
  Histogram<22> time_to_first_token{kFirstTokenBuckets};
  Histogram<19> inter_token{kTokenTimeBuckets};
  Histogram<19> time_per_output_token{kTokenTimeBuckets};  // mean of a request, without the first
  Histogram<21> e2e{kRequestTimeBuckets};                  // submit -> finish
  Histogram<21> queue{kRequestTimeBuckets};                // submit -> first scheduled
  Histogram<21> inference{kRequestTimeBuckets};            // first scheduled -> finish
  Histogram<21> prefill{kRequestTimeBuckets};              // first scheduled -> first token
  Histogram<21> decode{kRequestTimeBuckets};               // first token -> finish
  Histogram<19> prompt_tokens{kRequestTokenBuckets};
  Histogram<19> computed_prompt_tokens{kRequestTokenBuckets};  // those not found in the cache
  Histogram<19> generated_tokens{kRequestTokenBuckets};
  Histogram<13> step_tokens{kStepTokenBuckets};
};

// Of the running requests of one policy.
struct KvPolicyUse {
  int num_running = 0;
  std::int64_t num_held_blocks = 0;  // one that k requests hold counts k times
};

// Counts since the start and states as of the last step.
struct EngineStats {
  int num_running = 0;
  int num_waiting = 0;                               // preempted ones included
  std::int64_t num_blocks = 0, num_free_blocks = 0;  // free counts cached blocks nobody holds
  std::int64_t num_cached_blocks = 0;                // of the free ones
  DiskTierStats prefix_disk;
  KvWaste kv_waste;  // of the held ones
  std::array<KvPolicyUse, kNumKvPolicies> kv_policies{};
  std::uint64_t num_steps = 0;
  std::uint64_t num_prompt_tokens = 0;  // computed, cached ones not counted
  std::uint64_t num_generated_tokens = 0;
  std::uint64_t num_preemptions = 0;
  std::uint64_t prefix_queries = 0, prefix_hits = 0;  // tokens asked for, tokens found
  std::uint64_t finished_stop = 0, finished_length = 0, finished_cancelled = 0, finished_error = 0;
  std::uint64_t timed_out = 0;                   // of those: by a time limit
  double prefill_time_s = 0, decode_time_s = 0;  // steps split by the share of their tokens
  ModelCounters model;
  EngineHistograms histograms;
};

class Engine {
 public:
  virtual ~Engine() = default;  // aborts what is left and joins the engine thread

  // Allocates the KV arena and starts the engine thread. kInvalidArgument or kResourceExhausted
  // with the numbers where not even one sequence fits; the errors of DiskTier::open().
  static Result<std::unique_ptr<Engine>> create(std::unique_ptr<Model> model,
                                                const EngineConfig& config);

  // `n` requests over one prompt, all or none: choice i draws with sampling.choice_idx + i. The
  // prompt is computed once where n slots are free at a time. Any thread; never waits for a step.
  // kInvalidArgument: empty prompt, ids outside the vocabulary, wrong sampling fields, prompt +
  // max_tokens, a policy or `n` that can never fit (with the numbers), or an encoder that is asked
  // for tokens. kResourceExhausted: the queue is full. kUnavailable: shutting down.
  virtual Result<std::vector<std::unique_ptr<TokenStream>>> submit_choices(EngineRequest request,
                                                                           int n) = 0;
  Result<std::unique_ptr<TokenStream>> submit(EngineRequest request) {
    DUNLIN_ASSIGN(streams, submit_choices(std::move(request), 1));
    return std::move(streams.front());
  }
  virtual void abort(RequestId id) = 0;  // no-op for an unknown or finished id

  // Forgets all cached prefixes, behind the step that runs; what running sequences know now doesn't
  // enter the cache later either. `done` is called once, from the engine thread (be quick).
  // Any thread. kUnavailable: the engine is stopping.
  virtual Outcome reset_prefix_cache(std::function<void(const PrefixCacheReset&)> done) = 0;

  virtual EngineStats stats() const = 0;
  virtual const EngineConfig& config() const = 0;  // with every default filled in
  virtual const ModelLimits& limits() const = 0;

  // Refuses new requests, lets accepted ones finish until `grace` is over, then cancels the rest.
  // Returns when none is left.
  virtual void shutdown(std::chrono::milliseconds grace) = 0;
};

}  // namespace dunlin
