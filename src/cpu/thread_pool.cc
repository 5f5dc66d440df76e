#include "cpu/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"
#include "cpu/cgroup.h"

namespace dunlin {
namespace {

using Clock = std::chrono::steady_clock;
using Fn = FunctionRef<void(int, int)>;

void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spinning bridges the gaps between the phases of a step (a few microseconds), yielding those
// between steps (sampling, scheduling); after both the thread parks and uses no CPU.
constexpr auto kSpin = std::chrono::microseconds(30);
constexpr auto kYield = std::chrono::microseconds(200);

// Waits until ready() or until kYield have passed; returns whether it was ready.
template <typename Ready>
bool wait_awake(Ready ready) {
  const auto start = Clock::now();
  while (true) {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      cpu_relax();
    }
    const auto waited = Clock::now() - start;
    if (waited > kYield) return ready();
    if (waited > kSpin) sched_yield();
  }
}

// The phase number in the upper half and the chunks not yet claimed in the lower: one compare and
// swap both claims a chunk and proves that its phase still runs, so a worker that was asleep can
// never run a chunk of a later phase with what it knew of an earlier one.
constexpr std::uint64_t kRemainingMask = 0xffffffffu;
std::uint64_t make_ticket(std::uint32_t phase, std::uint32_t remaining) {
  return (std::uint64_t{phase} << 32) | remaining;
}

}  // namespace

struct ThreadPool::Impl {
  // Written by the caller between phases; read by whoever has claimed a chunk, which holds the
  // phase open.
  const Fn* fn = nullptr;
  int num_chunks = 0;
  std::uint32_t phase = 0;

  alignas(64) std::atomic<std::uint64_t> ticket{0};
  alignas(64) std::atomic<int> not_done{0};
  alignas(64) std::atomic<int> num_parked{0};
  std::atomic<bool> caller_parked{false};
  std::atomic<bool> stop{false};

  std::mutex mutex;
  std::condition_variable work_ready;
  std::condition_variable work_done;
  std::vector<std::thread> threads;

  bool has_work() const { return (ticket.load() & kRemainingMask) != 0; }

  // Runs chunks until none is left to claim.
  void work(int worker_idx) {
    std::uint64_t seen = ticket.load(std::memory_order_acquire);
    while ((seen & kRemainingMask) != 0) {
      if (!ticket.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
        continue;
      }
      (*fn)(num_chunks - static_cast<int>(seen & kRemainingMask), worker_idx);
      // Sequentially consistent, as the read of caller_parked: either the caller sees the count
      // at zero before it parks, or this thread sees that it has parked.
      if (not_done.fetch_sub(1) == 1 && caller_parked.load()) {
        const std::lock_guard lock(mutex);
        work_done.notify_one();
      }
      seen = ticket.load(std::memory_order_acquire);
    }
  }

  void worker_loop(int worker_idx) {
    while (true) {
      if (!wait_awake([&] { return has_work() || stop.load(std::memory_order_relaxed); })) {
        std::unique_lock lock(mutex);
        num_parked.fetch_add(1);
        work_ready.wait(lock, [&] { return has_work() || stop.load(); });
        num_parked.fetch_sub(1);
      }
      if (stop.load()) return;
      work(worker_idx);
    }
  }

  void wait_done() {
    const auto done = [&] { return not_done.load() == 0; };
    if (wait_awake(done)) return;
    std::unique_lock lock(mutex);
    caller_parked.store(true);
    work_done.wait(lock, done);
    caller_parked.store(false);
  }
};

ThreadPool::ThreadPool(int num_threads) : impl_(std::make_unique<Impl>()) {
  if (num_threads <= 0) num_threads = default_num_threads();
  impl_->threads.reserve(static_cast<std::size_t>(num_threads - 1));
  for (int i = 1; i < num_threads; ++i) {
    impl_->threads.emplace_back([impl = impl_.get(), i] { impl->worker_loop(i); });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stop.store(true);
  }
  impl_->work_ready.notify_all();
  for (std::thread& thread : impl_->threads) thread.join();
}

int ThreadPool::num_threads() const { return static_cast<int>(impl_->threads.size()) + 1; }

void ThreadPool::parallel_for(int num_chunks, Fn fn) {
  DUNLIN_CHECK(num_chunks >= 0, "a phase has no negative number of chunks");
  if (num_chunks <= 1 || impl_->threads.empty()) {
    for (int i = 0; i < num_chunks; ++i) fn(i, 0);
    return;
  }
  Impl& pool = *impl_;
  DUNLIN_DCHECK(pool.not_done.load() == 0, "parallel_for called from inside a chunk");
  pool.fn = &fn;
  pool.num_chunks = num_chunks;
  pool.not_done.store(num_chunks, std::memory_order_relaxed);
  // Sequentially consistent with the read of num_parked: a worker about to park either is counted
  // here or sees this ticket before it sleeps.
  pool.ticket.store(make_ticket(++pool.phase, static_cast<std::uint32_t>(num_chunks)));
  if (pool.num_parked.load() > 0) {
    const std::lock_guard lock(pool.mutex);
    pool.work_ready.notify_all();
  }
  pool.work(0);
  pool.wait_done();
}

int default_num_threads() {
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) cores = CPU_COUNT(&mask);
  const CgroupLimits limits = read_cgroup_limits();
  if (limits.cpus) cores = std::min(cores, static_cast<int>(std::ceil(*limits.cpus)));
  return std::max(cores, 1);
}

}  // namespace dunlin
