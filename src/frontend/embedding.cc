#include "frontend/embedding.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace dunlin {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::pair<std::string_view, Pooling> kNames[] = {
    {"mean", Pooling::kMean}, {"cls", Pooling::kCls}, {"last", Pooling::kLast}};

// The server's limit on a request holds for all texts together.
EmbeddingOptions with_deadline(EmbeddingOptions options, milliseconds longest) {
  if (longest.count() > 0 && (options.deadline.count() == 0 || longest < options.deadline))
    options.deadline = longest;
  return options;
}

std::vector<float> shaped(std::vector<float> vector, const EmbeddingOptions& options) {
  if (options.dimensions > 0)
    vector.resize(std::min(vector.size(), static_cast<std::size_t>(options.dimensions)));
  if (!options.normalize) return vector;
  double sum = 0;
  for (const float x : vector) sum += static_cast<double>(x) * x;
  if (sum == 0) return vector;  // no direction
  const double scale = 1 / std::sqrt(sum);
  for (float& x : vector) x = static_cast<float>(x * scale);
  return vector;
}

}  // namespace

std::optional<Pooling> parse_pooling(std::string_view word) {
  for (const auto& [name, pooling] : kNames)
    if (name == word) return pooling;
  return std::nullopt;
}

std::string_view pooling_name(Pooling pooling) {
  for (const auto& [name, value] : kNames)
    if (value == pooling) return name;
  return "none";
}

EmbeddingJob::EmbeddingJob(Engine& engine, std::vector<std::vector<TokenId>> texts,
                           EmbeddingOptions options)
    : engine_(engine),
      options_(with_deadline(std::move(options), engine.config().request_timeout)),
      texts_(std::move(texts)),
      vectors_(texts_.size()) {
  for (const std::vector<TokenId>& text : texts_)
    num_prompt_tokens_ += static_cast<int>(text.size());
}

void EmbeddingJob::on_ready(std::function<void()> notify) {
  const std::lock_guard lock(mutex_);
  notify_ = std::move(notify);
  submit_more();
}

void EmbeddingJob::advance() {
  const std::lock_guard lock(mutex_);
  std::erase_if(running_, [this](Running& running) {
    std::optional<TokenOutput> output = running.stream->poll();
    return output && take(running, *output);
  });
  submit_more();
}

void EmbeddingJob::wait(milliseconds timeout) {
  advance();
  if (finished() || running_.empty()) return;
  std::optional<TokenOutput> output = running_.front().stream->wait(timeout);
  if (!output) return;
  const std::lock_guard lock(mutex_);
  if (take(running_.front(), *output)) running_.erase(running_.begin());
}

void EmbeddingJob::cancel() {
  const std::lock_guard lock(mutex_);
  is_cancelled_ = true;
  for (const Running& running : running_) engine_.abort(running.stream->id());
}

// As many at once as the engine runs: more would only fill its queue.
void EmbeddingJob::submit_more() {
  const auto max_running = static_cast<std::size_t>(engine_.config().max_seqs);
  while (!error_ && num_submitted_ < texts_.size() && running_.size() < max_running) {
    if (is_cancelled_) {
      error_ = Status(StatusCode::kCancelled, "the request was cancelled");
      return;
    }
    const auto passed = std::chrono::duration_cast<milliseconds>(Clock::now() - begin_);
    const milliseconds left = options_.deadline - passed;
    if (options_.deadline.count() > 0 && left.count() <= 0) return end_by_deadline();
    auto stream = engine_.submit(next_request(left));
    if (!stream) {
      // Others fill the queue: what runs here will make room.
      const bool is_full = stream.error().code() == StatusCode::kResourceExhausted;
      if (!is_full || running_.empty()) error_ = stream.error();
      return;
    }
    texts_[num_submitted_] = {};
    running_.push_back({num_submitted_++, std::move(*stream)});
    if (notify_) running_.back().stream->on_ready(notify_);
  }
}

EngineRequest EmbeddingJob::next_request(milliseconds left) {
  EngineRequest request;
  request.prompt = texts_[num_submitted_];
  request.pooling =
      options_.pooling == Pooling::kNone ? engine_.limits().pooling : options_.pooling;
  request.priority = options_.priority;
  request.cache_salt = options_.cache_salt;
  request.tenant = options_.tenant;
  if (num_submitted_ == 0) request.queue_timeout = options_.queue_timeout;
  if (options_.deadline.count() > 0) request.deadline = left;
  return request;
}

void EmbeddingJob::end_by_deadline() {
  ended_by_ = TimeLimit::kDeadline;
  error_ = Status(StatusCode::kUnavailable,
                  fmt::format("the request's {} ms were over before its embeddings were done; try "
                              "again later, or give it more time",
                              options_.deadline.count()));
}

bool EmbeddingJob::take(const Running& running, TokenOutput& output) {
  if (output.finish == FinishReason::kNone) return false;
  if (output.finish == FinishReason::kStop) {
    vectors_[running.text_idx] = shaped(std::move(output.embedding), options_);
    ++num_done_;
  } else if (!error_ && output.ended_by == TimeLimit::kDeadline && options_.deadline.count() > 0) {
    end_by_deadline();
  } else if (!error_) {
    ended_by_ = output.ended_by;
    error_ =
        output.error ? *output.error : Status(StatusCode::kCancelled, "the request was cancelled");
  }
  return true;
}

}  // namespace dunlin
