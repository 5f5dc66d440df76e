#include "cpu/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace dunlin {
namespace {

using namespace std::chrono_literals;

TEST(ThreadPool, RunsEachChunkOnceForAnyNumberOfThreadsAndChunks) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.num_threads(), threads);
    for (const int chunks : {0, 1, 2, 3, 17, 1000}) {
      std::vector<int> runs(static_cast<std::size_t>(chunks), 0);  // plain: the pool orders writes
      std::atomic<bool> bad_worker{false};
      pool.parallel_for(chunks, [&](int chunk, int worker) {
        runs[static_cast<std::size_t>(chunk)] += 1;
        if (worker < 0 || worker >= threads) bad_worker = true;
      });
      for (const int count : runs) EXPECT_EQ(count, 1);
      EXPECT_FALSE(bad_worker);
    }
  }
}

// More chunks than a worker's run can count one by one.
TEST(ThreadPool, RunsVeryManyChunks) {
  ThreadPool pool(3);
  constexpr int kChunks = 1'000'003;
  std::vector<char> runs(kChunks, 0);
  pool.parallel_for(kChunks, [&](int chunk, int) { ++runs[static_cast<std::size_t>(chunk)]; });
  EXPECT_EQ(std::count(runs.begin(), runs.end(), 1), kChunks);
}

TEST(ThreadPool, AWorkerBeginsWithItsFirstChunk) {
  ThreadPool pool(2);
  EXPECT_EQ(pool.first_chunk(0, 10), 0);
  EXPECT_EQ(pool.first_chunk(1, 10), 5);
  std::atomic<int> first_of_worker{-1};
  std::atomic<bool> begun{false};
  pool.parallel_for(10, [&](int chunk, int worker) {
    int none = -1;
    if (worker == 1 && first_of_worker.compare_exchange_strong(none, chunk)) begun = true;
    const auto give_up = std::chrono::steady_clock::now() + 10s;
    while (!begun && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  });
  EXPECT_EQ(first_of_worker, 5);
}

// Ranges that are gone are as good as any: nothing is dereferenced.
TEST(ThreadPool, WarmsRangesThatMayBeFreed) {
  ThreadPool pool(2);
  for (int phase = 0; phase < 200; ++phase) {
    std::vector<std::byte> bytes(100'000);
    pool.warm(1, bytes);
    pool.parallel_for(4, [](int, int) {});
  }
}

TEST(ThreadPool, WhatOnePhaseWritesTheNextCanRead) {
  ThreadPool pool(4);
  constexpr int kChunks = 64;
  std::vector<std::int64_t> values(kChunks, 0);
  for (int phase = 1; phase <= 3000; ++phase) {
    pool.parallel_for(kChunks, [&](int chunk, int) {
      // Reads what some other worker wrote a phase ago.
      values[static_cast<std::size_t>(chunk)] += phase;
    });
  }
  for (const std::int64_t value : values) EXPECT_EQ(value, 3000LL * 3001 / 2);
}

// A worker put to sleep inside a chunk must delay only that chunk: all the others are run by the
// caller meanwhile.
TEST(ThreadPool, ASleepingWorkerHoldsOnlyItsChunk) {
  ThreadPool pool(2);
  std::atomic<bool> worker_asleep{false};
  std::atomic<int> done_while_asleep{0};
  pool.parallel_for(100, [&](int, int worker) {
    if (worker == 1 && !worker_asleep.exchange(true)) {
      const auto give_up = std::chrono::steady_clock::now() + 10s;
      while (done_while_asleep.load() < 99 && std::chrono::steady_clock::now() < give_up) {
        std::this_thread::sleep_for(1ms);
      }
      return;
    }
    while (!worker_asleep.load()) std::this_thread::sleep_for(100us);
    ++done_while_asleep;
  });
  EXPECT_EQ(done_while_asleep.load(), 99);
}

// A phase must not wait for a chunk that was let go: the caller redoes it, and the worker learns
// that its own result is not wanted, even when many phases have passed.
TEST(ThreadPool, AnOverdueChunkThatWasLetGoIsRedone) {
  std::atomic<bool> begun{false}, over{false};
  std::atomic<int> lost{0};
  std::vector<int> published(100, 0);
  {
    ThreadPool pool(2);
    pool.redo_overdue_chunks();
    pool.parallel_for_attempts(100, [&](ThreadPool::Attempt& attempt) {
      const auto give_up = std::chrono::steady_clock::now() + 10s;
      const bool is_worker = attempt.worker_idx() == 1, sleeps = is_worker && !begun;
      while (!is_worker && !begun && std::chrono::steady_clock::now() < give_up) {
        std::this_thread::yield();
      }
      EXPECT_EQ(attempt.may_let_go(), is_worker);
      // The closure is part of the phase, so what is needed when that is over is fetched before.
      std::atomic<bool>&has_begun = begun, &is_over = over;
      std::atomic<int>& num_lost = lost;
      attempt.let_go();
      if (sleeps) has_begun = true;  // only now: the caller does not look for it for ever
      while (sleeps && !is_over && std::chrono::steady_clock::now() < give_up) {
        std::this_thread::sleep_for(1ms);
      }
      if (!attempt.take_back()) {
        ++num_lost;
        return;
      }
      ++published[static_cast<std::size_t>(attempt.chunk_idx())];
    });
    EXPECT_EQ(std::count(published.begin(), published.end(), 1), 100);
    for (int phase = 0; phase < 100; ++phase) pool.parallel_for(2, [](int, int) {});
    over = true;
  }
  EXPECT_GE(lost.load(), 1);
  EXPECT_EQ(std::count(published.begin(), published.end(), 1), 100);
}

TEST(ThreadPool, NothingIsLetGoUnlessItIsAskedFor) {
  ThreadPool pool(2);
  pool.parallel_for_attempts(100, [&](ThreadPool::Attempt& attempt) {
    EXPECT_FALSE(attempt.may_let_go());
    attempt.let_go();
    EXPECT_TRUE(attempt.take_back());
  });
}

// With more workers than cores chunks are overdue all the time.
TEST(ThreadPool, EachChunkIsPublishedOnceHoweverManyAreRedone) {
  ThreadPool pool(8);
  pool.redo_overdue_chunks();
  for (int phase = 0; phase < 300; ++phase) {
    std::vector<int> published(24, 0);  // plain: the pool orders writes
    pool.parallel_for_attempts(24, [&](ThreadPool::Attempt& attempt) {
      int& count = published[static_cast<std::size_t>(attempt.chunk_idx())];
      attempt.let_go();
      const auto until = std::chrono::steady_clock::now() + 20us;
      while (std::chrono::steady_clock::now() < until) {
      }
      if (attempt.take_back()) ++count;
    });
    EXPECT_EQ(std::count(published.begin(), published.end(), 1), 24) << "phase " << phase;
  }
}

// The caller must not need its workers at all: they may never be given a core.
TEST(ThreadPool, ManyShortPhasesWithMoreWorkersThanCoresEnd) {
  ThreadPool pool(16);
  std::atomic<std::int64_t> sum{0};
  for (int phase = 0; phase < 2000; ++phase) {
    pool.parallel_for(20, [&](int chunk, int) { sum += chunk; });
  }
  EXPECT_EQ(sum.load(), 2000LL * 190);
}

TEST(ThreadPool, WakesParkedWorkersAndIsWokenByThem) {
  ThreadPool pool(2);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(2ms);  // long enough to park
    std::atomic<int> others{0};
    pool.parallel_for(2, [&](int, int worker) {
      if (worker == 1) {
        ++others;
        std::this_thread::sleep_for(2ms);  // long enough for the caller to park
      } else {
        const auto give_up = std::chrono::steady_clock::now() + 10s;
        while (others.load() == 0 && std::chrono::steady_clock::now() < give_up) {
          std::this_thread::yield();
        }
      }
    });
    EXPECT_EQ(others.load(), 1) << "the worker slept through round " << round;
  }
}

TEST(ThreadPool, UsesNoCpuWhenIdle) {
  ThreadPool pool(4);
  pool.parallel_for(8, [](int, int) {});
  std::this_thread::sleep_for(20ms);  // time to park
  const auto cpu_us = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000L + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_usec;
  };
  const long before = cpu_us();
  std::this_thread::sleep_for(200ms);
  EXPECT_LT(cpu_us() - before, 10000);
}

TEST(ThreadPool, CanBeMadeAndDroppedAtOnce) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(4);
    if (i % 2 == 0) pool.parallel_for(4, [](int, int) {});
  }
}

}  // namespace
}  // namespace dunlin
