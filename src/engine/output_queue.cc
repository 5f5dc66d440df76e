#include "engine/output_queue.h"

#include <utility>

namespace dunlin {

void OutputQueue::push(TokenOutput output) {
  {
    const std::lock_guard lock(mutex_);
    if (size_ == ring_.size()) {
      std::vector<TokenOutput> larger(2 * ring_.size());
      for (std::size_t i = 0; i < size_; ++i) {
        larger[i] = std::move(ring_[(head_ + i) & (ring_.size() - 1)]);
      }
      ring_ = std::move(larger);
      head_ = 0;
    }
    ring_[(head_ + size_) & (ring_.size() - 1)] = std::move(output);
    ++size_;
  }
  ready_.notify_one();
  const std::lock_guard lock(notify_mutex_);
  if (notify_) notify_();
}

std::optional<TokenOutput> OutputQueue::pop_locked() {
  if (size_ == 0) return std::nullopt;
  std::optional<TokenOutput> output(std::move(ring_[head_]));
  head_ = (head_ + 1) & (ring_.size() - 1);
  --size_;
  return output;
}

std::optional<TokenOutput> OutputQueue::pop() {
  const std::lock_guard lock(mutex_);
  return pop_locked();
}

std::optional<TokenOutput> OutputQueue::pop_within(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  ready_.wait_for(lock, timeout, [this] { return size_ > 0; });
  return pop_locked();
}

void OutputQueue::set_notify(std::function<void()> notify) {
  const std::lock_guard lock(notify_mutex_);
  notify_ = std::move(notify);
  bool has_output = false;
  {
    const std::lock_guard queue_lock(mutex_);
    has_output = size_ > 0;
  }
  if (has_output && notify_) notify_();
}

}  // namespace dunlin
