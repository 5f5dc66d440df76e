// Embeddings of several texts: engine requests, some at a time, and the vectors that come of them.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dunlin/pooling.h"
#include "dunlin/status.h"
#include "dunlin/types.h"
#include "engine/engine.h"

namespace dunlin {

struct EmbeddingOptions {
  Pooling pooling = Pooling::kNone;  // kNone: the model's own
  // So many elements from the front: what models trained with Matryoshka representation learning
  // (Kusupati et al., 2022) can do without the rest. 0: all.
  int dimensions = 0;
  bool normalize = true;  // to unit length, behind the cut
  int priority = 0;
  int tenant = 0;          // EngineRequest::tenant
  std::string cache_salt;  // EngineRequest::cache_salt
  // Of all texts together, from the job's start; 0: none. The first until the first text runs.
  std::chrono::milliseconds queue_timeout{0}, deadline{0};
};

// "mean", "cls", "last"; nullopt for another word.
std::optional<Pooling> parse_pooling(std::string_view word);
std::string_view pooling_name(Pooling pooling);

// One reader at a time; cancel() may be called from any thread. Destroying it cancels. advance()
// with on_ready() and wait() are two ways of reading: use one. The engine must outlive it.
class EmbeddingJob {
 public:
  // Each text at least one token and no longer than the engine's context.
  EmbeddingJob(Engine& engine, std::vector<std::vector<TokenId>> texts, EmbeddingOptions options);

  // Takes what has come and submits what there is room for; never waits.
  void advance();
  // Waits up to `timeout` for something to take, and takes it.
  void wait(std::chrono::milliseconds timeout);
  // As TokenStream::on_ready, for all requests, those to come too. To be called before the first
  // advance().
  void on_ready(std::function<void()> notify);
  void cancel();

  bool finished() const { return error_ || num_done_ == vectors_.size(); }
  // Once finished: why there are no vectors, if so.
  const std::optional<Status>& error() const { return error_; }
  TimeLimit ended_by() const { return ended_by_; }
  // Once finished, [number of texts] in their order.
  const std::vector<std::vector<float>>& vectors() const { return vectors_; }
  int num_prompt_tokens() const { return num_prompt_tokens_; }

 private:
  struct Running {
    std::size_t text_idx;
    std::unique_ptr<TokenStream> stream;
  };

  void submit_more();
  EngineRequest next_request(std::chrono::milliseconds left);
  void end_by_deadline();
  // True where that was the request's end.
  bool take(const Running& running, TokenOutput& output);

  Engine& engine_;
  const EmbeddingOptions options_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<std::vector<TokenId>> texts_;  // emptied as they are submitted
  std::vector<std::vector<float>> vectors_;
  std::size_t num_submitted_ = 0, num_done_ = 0;
  int num_prompt_tokens_ = 0;
  std::optional<Status> error_;
  TimeLimit ended_by_ = TimeLimit::kNone;
  std::function<void()> notify_;
  std::mutex mutex_;  // guards what follows against cancel()
  std::vector<Running> running_;
  bool is_cancelled_ = false;
};

}  // namespace dunlin
