#include "frontend/generation.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "frontend/output_processor.h"

namespace dunlin {
namespace {

using Clock = std::chrono::steady_clock;

// One choice: the engine's request and what turns its tokens into text.
struct Choice {
  std::unique_ptr<TokenStream> stream;  // null once finished
  RequestId request_id;
  OutputProcessor processor;
};

// Wakes wait(); shared with the engine's callbacks, which may outlive the Generation by a moment.
struct Waker {
  std::mutex mutex;
  std::condition_variable changed;
  bool ready = false;

  void wake() {
    {
      const std::lock_guard lock(mutex);
      ready = true;
    }
    changed.notify_one();
  }
  void wait_until(Clock::time_point deadline) {
    std::unique_lock lock(mutex);
    changed.wait_until(lock, deadline, [this] { return ready; });
    ready = false;
  }
};

class GenerationImpl final : public Generation {
 public:
  GenerationImpl(Engine& engine, const Tokenizer& tokenizer, std::vector<TokenId> prompt)
      : engine_(engine), tokenizer_(tokenizer), prompt_(std::move(prompt)) {}

  Outcome submit(const GenerationOptions& options) {
    EngineRequest request;
    request.prompt = prompt_;
    request.sampling = options.sampling;
    const auto eos_ids = tokenizer_.eos_ids();
    request.eos_ids.assign(eos_ids.begin(), eos_ids.end());
    request.priority = options.priority;
    request.tenant = options.tenant;
    request.queue_timeout = options.queue_timeout;
    request.deadline = options.deadline;
    request.cache_salt = options.cache_salt;
    request.kv_policy = options.kv_policy;
    request.echo_logprobs = options.echo_logprobs;
    DUNLIN_ASSIGN(streams, engine_.submit_choices(std::move(request), options.n));
    choices_.reserve(streams.size());
    for (auto& stream : streams) {
      const RequestId id = stream->id();
      const int choice_idx = static_cast<int>(choices_.size());
      choices_.push_back({std::move(stream), id, OutputProcessor(tokenizer_, options, choice_idx)});
    }
    num_unfinished_ = options.n;
    return {};
  }

  std::optional<TextDelta> poll() override {
    for (std::size_t tried = 0; tried < choices_.size(); ++tried) {
      Choice& choice = choices_[next_choice_];
      next_choice_ = (next_choice_ + 1) % choices_.size();
      if (!choice.stream) continue;
      if (auto output = choice.stream->poll()) return take(choice, *output);
    }
    return std::nullopt;
  }

  std::optional<TextDelta> wait(std::chrono::milliseconds timeout) override {
    if (choices_.size() == 1) {
      Choice& choice = choices_.front();
      if (!choice.stream) return std::nullopt;
      auto output = choice.stream->wait(timeout);
      return output ? std::optional(take(choice, *output)) : std::nullopt;
    }
    if (!waker_) {
      waker_ = std::make_shared<Waker>();
      on_ready([waker = waker_] { waker->wake(); });
    }
    const auto deadline = Clock::now() + timeout;
    while (true) {
      if (auto delta = poll()) return delta;
      if (finished() || Clock::now() >= deadline) return std::nullopt;
      waker_->wait_until(deadline);
    }
  }

  void on_ready(std::function<void()> notify) override {
    for (Choice& choice : choices_) {
      if (choice.stream) choice.stream->on_ready(notify);
    }
  }

  bool finished() const override { return num_unfinished_ == 0; }

  void cancel() override {
    for (const Choice& choice : choices_) engine_.abort(choice.request_id);
  }

  int num_prompt_tokens() const override { return static_cast<int>(prompt_.size()); }

 private:
  TextDelta take(Choice& choice, const TokenOutput& output) {
    TextDelta delta = choice.processor.process(output);
    if (!output.prompt_logprobs.empty())
      delta.prompt_logprobs = describe_prompt(tokenizer_, prompt_, output.prompt_logprobs);
    if (delta.finish != FinishReason::kNone) {
      // A stop string ends the request here, before the engine knows: its times end now.
      if (delta.stats.total_time_s == 0) delta.stats.total_time_s = seconds_since(begin_);
      choice.stream.reset();
      --num_unfinished_;
    }
    return delta;
  }

  Engine& engine_;
  const Tokenizer& tokenizer_;
  const std::vector<TokenId> prompt_;
  std::vector<Choice> choices_;
  std::size_t next_choice_ = 0;
  int num_unfinished_ = 0;
  std::shared_ptr<Waker> waker_;
  const Clock::time_point begin_ = Clock::now();
};

}  // namespace

Result<std::unique_ptr<Generation>> start_generation(Engine& engine, const Tokenizer& tokenizer,
                                                     std::vector<TokenId> prompt,
                                                     const GenerationOptions& options) {
  auto generation = std::make_unique<GenerationImpl>(engine, tokenizer, std::move(prompt));
  DUNLIN_TRY(generation->submit(options));
  return generation;
}

}  // namespace dunlin
