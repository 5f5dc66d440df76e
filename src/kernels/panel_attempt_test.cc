#include "kernels/panel_attempt.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace dunlin {
namespace {

using namespace std::chrono_literals;

std::atomic<bool> worker_begun, phase_over;

// y[t, r] = the first code of token t + r. On a thread other than the caller's it takes until the
// phase is over.
void slow_kernel(const PanelJob& job) {
  static const std::thread::id caller = std::this_thread::get_id();
  const auto give_up = std::chrono::steady_clock::now() + 10s;
  const bool is_caller = std::this_thread::get_id() == caller;
  if (!is_caller) worker_begun = true;
  while (std::chrono::steady_clock::now() < give_up && !(is_caller ? worker_begun : phase_over)) {
    std::this_thread::sleep_for(100us);
  }
  for (std::int64_t t = 0; t < job.num_tokens; ++t) {
    for (std::int64_t r = 0; r < job.num_rows; ++r) {
      job.y[t * job.y_stride + r] =
          static_cast<float>(job.x.blocks[t * job.x.stride].q[0]) + static_cast<float>(r);
    }
  }
}

// The inputs and the results of a phase are somebody else's when it is over: a worker that was
// asleep meanwhile reads and writes neither (the thread sanitizer sees to it).
TEST(PanelAttempt, ALateWorkerTouchesNothingOfThePhase) {
  constexpr std::int64_t kTokens = 2, kRows = 32, kChunks = 8;
  std::vector<ActivationBlock> blocks(kTokens);
  std::vector<float> y(kTokens * kRows * kChunks, -1);
  blocks[0].q[0] = 100;
  blocks[1].q[0] = 50;
  {
    ThreadPool pool(2);
    pool.redo_overdue_chunks();
    PanelJob empty{};
    worker_begun = phase_over = true;
    slow_kernel(empty);  // knows the caller from now on
    worker_begun = phase_over = false;
    pool.parallel_for_attempts(kChunks, [&](ThreadPool::Attempt& attempt) {
      PanelJob job{};
      job.num_rows = kRows;
      job.x = {.num_blocks = 1, .stride = 1, .blocks = blocks.data(), .values = nullptr};
      job.num_tokens = kTokens;
      job.y = y.data() + attempt.chunk_idx() * kRows;
      job.y_stride = kRows * kChunks;
      run_attempt(attempt, slow_kernel, job);
    });
    for (std::int64_t i = 0; i < kTokens * kRows * kChunks; ++i) {
      const std::int64_t token = i / (kRows * kChunks), row = i % kRows;
      EXPECT_EQ(y[static_cast<std::size_t>(i)], static_cast<float>((token == 0 ? 100 : 50) + row));
    }
    blocks.assign(kTokens, ActivationBlock{});
    y.assign(y.size(), -2);
    phase_over = true;
  }
  for (const float value : y) EXPECT_EQ(value, -2);
}

}  // namespace
}  // namespace dunlin
