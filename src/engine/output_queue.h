// OutputQueue: one request's outputs on their way from the engine thread to one reader. Holds at
// most what a request can give (max_tokens + 1); grows to the reader's lag and then allocates no
// more.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/request.h"

namespace dunlin {

class OutputQueue {
 public:
  OutputQueue() : ring_(8) {}

  void push(TokenOutput output);  // engine thread; calls notify
  std::optional<TokenOutput> pop();
  std::optional<TokenOutput> pop_within(std::chrono::milliseconds timeout);

  // After it returns, the former notify is neither running nor called again.
  void set_notify(std::function<void()> notify);

 private:
  std::optional<TokenOutput> pop_locked();

  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<TokenOutput> ring_;  // power of two
  std::size_t head_ = 0;
  std::size_t size_ = 0;

  // Held during the call, so apart from mutex_: notify may pop.
  std::mutex notify_mutex_;
  std::function<void()> notify_;
};

}  // namespace dunlin
