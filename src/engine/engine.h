// The engine: many requests in, tokens out, one batch a step. One engine thread runs
// schedule -> run -> commit until there is nothing to do, then sleeps without using CPU.
//
// Thread-safe: submit, abort, stats, shutdown. submit and abort are the only ways in.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "dunlin/status.h"
#include "dunlin/types.h"
#include "engine/request.h"
#include "model/model.h"

namespace dunlin {

struct EngineConfig {
  int max_context = 0;             // tokens a sequence may hold, prompt and output; 0: the model's, or what fits
  int max_seqs = 64;               // sequences running at once
  int max_batch_tokens = 512;      // token budget of a step
  int max_queue = 512;             // requests waiting; beyond it submit answers kResourceExhausted
  std::int64_t kv_bytes = 0;       // size of the KV arena; 0: chosen from free memory and max_context
  bool prefix_cache = true;
};

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
  // `notify` is called from the engine thread after outputs were added; it must be quick (post
  // to an executor). Called at once where outputs are already there.
  virtual void on_ready(std::function<void()> notify) = 0;
};

struct EngineStats {
  int num_running = 0;
  int num_waiting = 0;
  std::int64_t num_blocks = 0, num_free_blocks = 0;  // free counts cached blocks nobody holds
  std::uint64_t num_steps = 0;
  std::uint64_t num_prompt_tokens = 0;      // computed, cached ones not counted
  std::uint64_t num_generated_tokens = 0;
  std::uint64_t num_preemptions = 0;
  std::uint64_t prefix_queries = 0, prefix_hits = 0;  // tokens asked for, tokens found
  std::uint64_t finished_stop = 0, finished_length = 0, finished_cancelled = 0, finished_error = 0;
  double prefill_time_s = 0, decode_time_s = 0;       // steps split by the share of their tokens
};

class Engine {
 public:
  virtual ~Engine() = default;  // aborts what is left and joins the engine thread

  // Allocates the KV arena and starts the engine thread. kInvalidArgument or kResourceExhausted
  // with the numbers where not even one sequence fits.
  static Result<std::unique_ptr<Engine>> create(std::unique_ptr<Model> model,
                                                const EngineConfig& config);

  // kInvalidArgument: empty prompt, ids outside the vocabulary, wrong sampling fields, or prompt +
  // max_tokens that can never fit (with the numbers). kResourceExhausted: the queue is full.
  // kUnavailable: shutting down.
  virtual Result<std::unique_ptr<TokenStream>> submit(EngineRequest request) = 0;
  virtual void abort(RequestId id) = 0;   // no-op for an unknown or finished id

  virtual EngineStats stats() const = 0;
  virtual const EngineConfig& config() const = 0;  // with every default filled in

  // Refuses new requests, lets running ones finish until `grace` is over, then cancels the rest.
  virtual void shutdown(std::chrono::milliseconds grace) = 0;
};

}  // namespace dunlin
