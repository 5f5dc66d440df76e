#include "engine/request_queue.h"

#include <utility>

#include <fmt/format.h>

namespace dunlin {

Result<RequestId> RequestQueue::submit(std::vector<std::unique_ptr<Sequence>> seqs) {
  const int count = static_cast<int>(seqs.size());
  const std::lock_guard lock(mutex_);
  if (closed_) return fail(StatusCode::kUnavailable, "the server is shutting down");
  if (num_waiting_ + count > max_waiting_) {
    return fail(StatusCode::kResourceExhausted,
                fmt::format("{} requests are waiting already, and the queue takes {}; try again "
                            "later or raise --max-queue",
                            num_waiting_, max_waiting_));
  }
  const RequestId first_id = last_id_ + 1;
  for (std::unique_ptr<Sequence>& seq : seqs) {
    seq->id = seq->arrival = ++last_id_;
    if (count > 1) seq->group = first_id;
    arrivals_.push_back(std::move(seq));
  }
  num_waiting_ += count;
  num_open_ += count;
  news_.notify_one();
  return first_id;
}

void RequestQueue::abort(RequestId id) {
  const std::lock_guard lock(mutex_);
  if (num_open_ == 0) return;
  aborts_.push_back(id);
  news_.notify_one();
}

Outcome RequestQueue::submit_task(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (stop_) return fail(StatusCode::kUnavailable, "the server is shutting down");
  tasks_.push_back(std::move(task));
  news_.notify_one();
  return {};
}

void RequestQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

void RequestQueue::cancel_all() {
  const std::lock_guard lock(mutex_);
  cancel_all_ = true;
  news_.notify_one();
}

void RequestQueue::stop() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  stop_ = true;
  news_.notify_one();
}

bool RequestQueue::wait_until_done(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return done_.wait_for(lock, timeout, [this] { return num_open_ == 0; });
}

void RequestQueue::wait_until_done() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return num_open_ == 0; });
}

void RequestQueue::take(News& news, bool wait) {
  news.arrivals.clear();
  news.aborts.clear();
  news.tasks.clear();
  std::unique_lock lock(mutex_);
  if (wait) news_.wait(lock, [this] { return has_news(); });
  std::swap(news.arrivals, arrivals_);
  std::swap(news.aborts, aborts_);
  std::swap(news.tasks, tasks_);
  news.cancel_all = std::exchange(cancel_all_, false);
  news.stop = stop_;
}

void RequestQueue::note_left_queue(int count) {
  if (count == 0) return;
  const std::lock_guard lock(mutex_);
  num_waiting_ -= count;
}

void RequestQueue::note_finished(int count) {
  if (count == 0) return;
  const std::lock_guard lock(mutex_);
  num_open_ -= count;
  if (num_open_ == 0) done_.notify_all();
}

}  // namespace dunlin
