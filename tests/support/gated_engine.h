// What tests of the whole engine share: a small one on a FakeModel, which a test can hold before
// each step.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "support/fake_model.h"

namespace dunlin::testing {

// A FakeModel on which the engine stops before each forward until let through.
class Gate {
 public:
  void install(FakeModel& model) {
    model.before_forward = [this](const ForwardBatch&) {
      std::unique_lock lock(mutex_);
      ++num_arrived_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return num_let_ > 0 || is_open_; });
      --num_let_;
    };
  }
  void let(int steps) {
    const std::lock_guard lock(mutex_);
    num_let_ = steps;
    changed_.notify_all();
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void wait_for_arrivals(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return num_arrived_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int num_arrived_ = 0;
  int num_let_ = 0;
  bool is_open_ = false;
};

inline EngineConfig small_config() {
  EngineConfig config;
  config.max_context = 256;
  config.max_seqs = 4;
  config.kv_bytes = 1 << 20;
  return config;
}

inline std::unique_ptr<Engine> make_engine(const EngineConfig& config, Gate* gate = nullptr) {
  auto model = std::make_unique<FakeModel>(std::vector<int>{0});
  if (gate != nullptr) gate->install(*model);
  return Engine::create(std::move(model), config).value();
}

inline std::vector<TokenId> read_all(TokenStream& stream, FinishReason* finish = nullptr) {
  std::vector<TokenId> tokens;
  while (true) {
    const auto output = stream.wait(std::chrono::seconds(20));
    if (!output) {
      ADD_FAILURE() << "no output in 20 s";
      return tokens;
    }
    if (output->token) tokens.push_back(*output->token);
    if (output->finish == FinishReason::kNone) continue;
    if (finish != nullptr) *finish = output->finish;
    EXPECT_FALSE(stream.poll().has_value());
    return tokens;
  }
}

}  // namespace dunlin::testing
