// An engine for tests: no model, its answers come from a script. A thread gives each running
// request one token a step; the test decides how long a step takes, how many run, and looks at
// what became of them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace dunlin {

// The tokens of the answer to a request; it ends with a token of eos_ids, or at max_tokens.
using FakeScript = std::function<std::vector<TokenId>(const EngineRequest&)>;

class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(FakeScript script, EngineConfig config = default_config())
      : script_(std::move(script)), config_(config), thread_([this] { run(); }) {}

  ~FakeEngine() override {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  static EngineConfig default_config() {
    EngineConfig config;
    config.max_context = 4096;
    config.max_seqs = 64;
    config.max_queue = 64;
    return config;
  }

  std::atomic<int> step_ms = 0;         // how long a step takes
  std::atomic<bool> is_paused = false;  // nothing is scheduled: requests wait
  ModelLimits limits_of_model{.vocab_size = 256, .context_length = 4096, .hidden_size = 8};

  Result<std::vector<std::unique_ptr<TokenStream>>> submit_choices(EngineRequest request,
                                                                   int n) override {
    const std::lock_guard lock(mutex_);
    if (static_cast<int>(requests_.size()) + n > config_.max_queue)
      return fail(StatusCode::kResourceExhausted, "the queue is full: 64 requests wait");
    std::vector<std::unique_ptr<TokenStream>> streams;
    for (int i = 0; i < n; ++i) {
      streams.push_back(start(request));
      ++request.sampling.choice_idx;
    }
    return streams;
  }

  void abort(RequestId id) override {
    const std::lock_guard lock(mutex_);
    for (const auto& state : requests_) {
      if (state->id == id) state->is_aborted = true;
    }
    changed_.notify_all();
  }

  Outcome reset_prefix_cache(std::function<void(const PrefixCacheReset&)> done) override {
    done({7, 5});
    return {};
  }

  EngineStats stats() const override {
    const std::lock_guard lock(mutex_);
    EngineStats stats = stats_;
    for (const auto& state : requests_) {
      if (state->is_aborted) continue;
      if (is_paused) {
        ++stats.num_waiting;
      } else {
        ++stats.num_running;
      }
    }
    stats.num_blocks = stats.num_free_blocks = 100;
    return stats;
  }

  const EngineConfig& config() const override { return config_; }
  const ModelLimits& limits() const override { return limits_of_model; }
  void shutdown(std::chrono::milliseconds) override {}

  int num_alive() const {
    const EngineStats now = stats();
    return now.num_running + now.num_waiting;
  }

 private:
  struct State {
    RequestId id = 0;
    EngineRequest request;
    const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    std::vector<TokenId> tokens;
    std::size_t num_given = 0;
    bool is_aborted = false;

    std::mutex mutex;
    std::condition_variable ready;
    std::deque<TokenOutput> outputs;
    std::function<void()> notify;

    void push(TokenOutput output) {
      const std::lock_guard lock(mutex);
      outputs.push_back(std::move(output));
      ready.notify_all();
      if (notify) notify();
    }
  };

  class Stream final : public TokenStream {
   public:
    Stream(FakeEngine& engine, std::shared_ptr<State> state)
        : engine_(engine), state_(std::move(state)) {}
    ~Stream() override {
      on_ready(nullptr);
      engine_.abort(state_->id);
    }
    RequestId id() const override { return state_->id; }
    std::optional<TokenOutput> poll() override {
      const std::lock_guard lock(state_->mutex);
      return take();
    }
    std::optional<TokenOutput> wait(std::chrono::milliseconds timeout) override {
      std::unique_lock lock(state_->mutex);
      state_->ready.wait_for(lock, timeout, [this] { return !state_->outputs.empty(); });
      return take();
    }
    void on_ready(std::function<void()> notify) override {
      const std::lock_guard lock(state_->mutex);
      state_->notify = std::move(notify);
      if (state_->notify && !state_->outputs.empty()) state_->notify();
    }

   private:
    std::optional<TokenOutput> take() {
      if (state_->outputs.empty()) return std::nullopt;
      TokenOutput output = std::move(state_->outputs.front());
      state_->outputs.pop_front();
      return output;
    }
    FakeEngine& engine_;
    std::shared_ptr<State> state_;
  };

  static TokenLogprobs fake_logprobs(TokenId token, int num) {
    TokenLogprobs out;
    out.logprob = -0.5f;
    for (int i = 0; i < num; ++i)
      out.top.emplace_back((token + i) % 256, -0.5f - 0.25f * static_cast<float>(i));
    return out;
  }

  std::unique_ptr<TokenStream> start(const EngineRequest& request) {
    auto state = std::make_shared<State>();
    state->id = ++last_id_;
    if (request.pooling == Pooling::kNone) state->tokens = script_(request);
    state->request = request;
    requests_.push_back(state);
    changed_.notify_all();
    return std::make_unique<Stream>(*this, std::move(state));
  }

  // Counts bytes: element i is how often token i stands in the prompt, and one more.
  static void give_embedding(State& state, int size) {
    TokenOutput output;
    output.embedding.assign(static_cast<std::size_t>(size), 1.0f);
    for (const TokenId id : state.request.prompt)
      if (id < size) output.embedding[static_cast<std::size_t>(id)] += 1;
    output.finish = FinishReason::kStop;
    output.stats.num_prompt_tokens = static_cast<int>(state.request.prompt.size());
    state.push(std::move(output));
  }

  // True where that was the last.
  static bool give_token(State& state) {
    const SamplingParams& sampling = state.request.sampling;
    TokenOutput output;
    const TokenId token =
        state.num_given < state.tokens.size() ? state.tokens[state.num_given] : TokenId{'.'};
    ++state.num_given;
    output.token = token;
    if (sampling.num_logprobs >= 0) output.logprobs = fake_logprobs(token, sampling.num_logprobs);
    if (state.request.echo_logprobs && state.num_given == 1) {
      for (const TokenId id : state.request.prompt)
        output.prompt_logprobs.push_back(fake_logprobs(id, sampling.num_logprobs));
    }
    const auto& eos = state.request.eos_ids;
    const auto& stops = sampling.stop_token_ids;
    const bool is_end =
        (!sampling.ignore_eos && std::find(eos.begin(), eos.end(), token) != eos.end()) ||
        std::find(stops.begin(), stops.end(), token) != stops.end();
    if (is_end) {
      output.finish = FinishReason::kStop;
    } else if (static_cast<int>(state.num_given) >= sampling.max_tokens) {
      output.finish = FinishReason::kLength;
    }
    output.stats.num_prompt_tokens = static_cast<int>(state.request.prompt.size());
    output.stats.num_output_tokens = static_cast<int>(state.num_given);
    const bool is_last = output.finish != FinishReason::kNone;
    state.push(std::move(output));
    return is_last;
  }

  void run() {
    while (true) {
      std::list<std::shared_ptr<State>> running;
      {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, std::chrono::milliseconds(20), [this] {
          return is_stopping_ || (!requests_.empty() && !is_paused) || has_aborted();
        });
        if (is_stopping_) return;
        drop_aborted();
        drop_late();
        if (is_paused) continue;
        running = requests_;
        ++stats_.num_steps;
      }
      if (step_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(step_ms.load()));
      for (const auto& state : running) {
        {
          const std::lock_guard lock(mutex_);
          if (state->is_aborted) continue;
        }
        if (state->request.pooling != Pooling::kNone)
          give_embedding(*state, limits_of_model.hidden_size);
        else if (!give_token(*state))
          continue;
        const std::lock_guard lock(mutex_);
        requests_.remove(state);
        ++stats_.finished_stop;
      }
    }
  }

  bool has_aborted() const {
    return std::any_of(requests_.begin(), requests_.end(),
                       [](const auto& state) { return state->is_aborted; });
  }

  void drop_aborted() {
    for (const auto& state : requests_) {
      if (!state->is_aborted) continue;
      TokenOutput output;
      output.finish = FinishReason::kCancelled;
      state->push(std::move(output));
      ++stats_.finished_cancelled;
    }
    requests_.remove_if([](const auto& state) { return state->is_aborted; });
  }

  // Requests whose deadline is over; they have no tokens yet where the engine is paused.
  void drop_late() {
    const auto now = std::chrono::steady_clock::now();
    const auto is_late = [now](const auto& state) {
      const std::chrono::milliseconds deadline = state->request.deadline;
      return deadline.count() > 0 && now - state->begin >= deadline;
    };
    for (const auto& state : requests_) {
      if (!is_late(state)) continue;
      TokenOutput output;
      output.finish = FinishReason::kError;
      output.error = Status(StatusCode::kUnavailable, "too late");
      output.ended_by = TimeLimit::kDeadline;
      state->push(std::move(output));
      ++stats_.finished_error;
    }
    requests_.remove_if(is_late);
  }

  const FakeScript script_;
  const EngineConfig config_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<std::shared_ptr<State>> requests_;
  EngineStats stats_;
  RequestId last_id_ = 0;
  bool is_stopping_ = false;
  std::thread thread_;
};

// A script that answers every request with `text` and the end token `end`.
inline FakeScript say(std::string text, TokenId end = 257) {
  return [text = std::move(text), end](const EngineRequest&) {
    std::vector<TokenId> tokens;
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    tokens.push_back(end);
    return tokens;
  };
}

}  // namespace dunlin
