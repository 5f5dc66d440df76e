// RequestQueue: the border between submitting threads and the engine thread, bounded. The engine
// thread takes everything at once at the start of a step and sleeps here when it has nothing to do.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "dunlin/status.h"
#include "engine/sequence.h"

namespace dunlin {

class RequestQueue {
 public:
  explicit RequestQueue(int max_waiting) : max_waiting_(max_waiting) {}

  // Any thread. Gives the sequences, choices over one prompt where they are several, their ids, the
  // returned one and those behind it, and arrivals; all or none. kResourceExhausted: with them more
  // than max_waiting accepted requests have not run yet. kUnavailable: closed.
  Result<RequestId> submit(std::vector<std::unique_ptr<Sequence>> seqs);
  void abort(RequestId id);
  // Something the engine thread is to do between two steps; done even where it stops before.
  // kUnavailable: it is stopping.
  Outcome submit_task(std::function<void()> task);
  // No more submits from now on.
  void close();
  // Asks the engine thread to cancel all that it has.
  void cancel_all();
  // Asks the engine thread to cancel all and return.
  void stop();
  // Waits until every accepted request has finished; false where `timeout` was over first.
  bool wait_until_done(std::chrono::milliseconds timeout);
  void wait_until_done();

  // What the engine thread has to know before a step.
  struct News {
    std::vector<std::unique_ptr<Sequence>> arrivals;
    std::vector<RequestId> aborts;
    std::vector<std::function<void()>> tasks;
    bool cancel_all = false;
    bool stop = false;
  };
  // Engine thread: replaces `news`. With `wait`, sleeps until there are some.
  void take(News& news, bool wait);
  // Engine thread: so many accepted requests ran for the first time or ended before.
  void note_left_queue(int count);
  // Engine thread: so many accepted requests have finished.
  void note_finished(int count);

 private:
  bool has_news() const {
    return !arrivals_.empty() || !aborts_.empty() || !tasks_.empty() || cancel_all_ || stop_;
  }

  const int max_waiting_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::condition_variable done_;
  std::vector<std::unique_ptr<Sequence>> arrivals_;
  std::vector<RequestId> aborts_;
  std::vector<std::function<void()>> tasks_;
  RequestId last_id_ = 0;
  int num_waiting_ = 0;  // accepted, not run yet
  int num_open_ = 0;     // accepted, not finished
  bool closed_ = false;
  bool cancel_all_ = false;
  bool stop_ = false;
};

}  // namespace dunlin
