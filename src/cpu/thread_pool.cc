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
#include "base/thread_name.h"
#include "cpu/cgroup.h"

namespace dunlin {
namespace {

using Clock = std::chrono::steady_clock;
using Attempt = ThreadPool::Attempt;
using Fn = FunctionRef<void(Attempt&)>;

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
// Chunks take about 50 us: one that the caller has waited for so long is on a worker that sleeps.
constexpr auto kOverdue = std::chrono::microseconds(300);

// Moves the calling thread off the core `cpu`, if it is there and may run on another. Spinning
// there it would take the core from the thread it waits for, and the system sees nothing wrong with
// two threads here and a neighbour alone on the next core.
bool leave_core(int cpu) {
  if (sched_getcpu() != cpu) return false;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return false;
  cpu_set_t others = allowed;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof(others), &others) != 0) return false;
  sched_setaffinity(0, sizeof(allowed), &allowed);
  return true;
}

// Waits until ready() or until `patience` has passed; returns whether it was ready. meanwhile() is
// called often and must be short; yield() after kSpin.
template <typename Ready, typename Meanwhile, typename Yield>
bool wait_awake(std::chrono::microseconds patience, Ready ready, Meanwhile meanwhile, Yield yield) {
  const auto start = Clock::now();
  while (true) {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      meanwhile();
    }
    const auto waited = Clock::now() - start;
    if (waited > patience) return ready();
    if (waited > kSpin) yield();
  }
}

// The chunks of a worker's run that are not yet claimed. The phase number is part of the word: one
// compare and swap both claims a chunk and proves that its phase still runs, so a worker that was
// asleep can never run a chunk of a later phase with what it knew of an earlier one.
struct Run {
  std::uint32_t phase;
  std::uint16_t begin, end;

  int left() const { return end - begin; }
};
static_assert(sizeof(Run) == sizeof(std::uint64_t));

constexpr int kMaxUnits = 65535;

struct alignas(64) Worker {
  std::atomic<Run> run{Run{}};
  // The chunk that it has let go: its phase and, from 1 on, its index; 0: none. Whoever changes it
  // to 0, the worker or the caller, is the one to publish the chunk.
  alignas(64) std::atomic<std::uint64_t> let_go{0};
  alignas(64) std::atomic<const std::byte*> warm{nullptr};
  std::atomic<std::size_t> warm_size{0};
};
static_assert(std::atomic<Run>::is_always_lock_free);

// Pulls a worker's range closer, a little at a time.
class Warmer {
 public:
  explicit Warmer(const Worker& worker) : worker_(worker) {}

  void step() {
    const std::byte* begin = worker_.warm.load(std::memory_order_relaxed);
    if (begin != begin_) {
      begin_ = begin;
      done_ = 0;
    }
    const std::size_t size = worker_.warm_size.load(std::memory_order_relaxed);
    // The two words are set one after the other: a size may be seen before its first range.
    if (begin == nullptr || done_ >= size) return cpu_relax();
    for (int line = 0; line < 8; ++line, done_ += 64) __builtin_prefetch(begin + done_, 0, 2);
  }

 private:
  const Worker& worker_;
  const std::byte* begin_ = nullptr;
  std::size_t done_ = 0;
};

}  // namespace

struct ThreadPool::Impl {
  explicit Impl(int num_threads) : workers(static_cast<std::size_t>(num_threads)) {}

  // Written by the caller between phases; read by whoever has claimed a unit, which holds the
  // phase open. Chunks are claimed in units of one, or more where there are very many.
  const Fn* fn = nullptr;
  int num_chunks = 0;
  int unit = 1;
  bool redoes = false;
  std::atomic<int> caller_cpu{-1};

  alignas(64) std::atomic<std::uint32_t> phase{0};
  alignas(64) std::atomic<int> not_done{0};
  alignas(64) std::atomic<int> num_parked{0};
  std::atomic<bool> caller_parked{false};
  std::atomic<bool> stop{false};

  std::mutex mutex;
  std::condition_variable work_ready;
  std::condition_variable work_done;
  std::vector<Worker> workers;
  std::vector<std::thread> threads;

  int num_units(int chunks) const { return (chunks + unit - 1) / unit; }

  // The next unit of a run, the first for its owner and the last for others; -1: none is left.
  static int claim(Worker& worker, bool first) {
    Run seen = worker.run.load(std::memory_order_acquire);
    while (seen.left() > 0) {
      Run rest = seen;
      first ? ++rest.begin : --rest.end;
      if (worker.run.compare_exchange_weak(seen, rest, std::memory_order_acq_rel,
                                           std::memory_order_acquire)) {
        return first ? seen.begin : rest.end;
      }
    }
    return -1;
  }

  // From the run with the most left.
  int claim_from_others() {
    while (true) {
      Worker* longest = nullptr;
      int most = 0;
      for (Worker& worker : workers) {
        const int left = worker.run.load(std::memory_order_relaxed).left();
        if (left > most) {
          most = left;
          longest = &worker;
        }
      }
      if (longest == nullptr) return -1;
      if (const int claimed = claim(*longest, false); claimed >= 0) return claimed;
    }
  }

  // Runs one chunk. Whether it is done, or given to another meanwhile.
  bool run(int chunk, int worker_idx) {
    Attempt attempt(chunk, worker_idx);
    if (redoes && unit == 1 && worker_idx != 0) {
      attempt.let_go_ = &workers[static_cast<std::size_t>(worker_idx)].let_go;
      attempt.tag_ = std::uint64_t{phase.load(std::memory_order_relaxed)} << 32 |
                     static_cast<std::uint64_t>(chunk + 1);
    }
    (*fn)(attempt);
    return !attempt.is_lost_;
  }

  // Runs chunks until none is left to claim.
  void work(int worker_idx) {
    Worker& own = workers[static_cast<std::size_t>(worker_idx)];
    while (true) {
      int claimed = claim(own, true);
      if (claimed < 0) claimed = claim_from_others();
      if (claimed < 0) return;
      const int end = std::min(num_chunks, (claimed + 1) * unit);
      bool is_done = true;
      for (int chunk = claimed * unit; chunk < end; ++chunk) is_done = run(chunk, worker_idx);
      if (!is_done) continue;
      // Sequentially consistent, as the read of caller_parked: either the caller sees the count
      // at zero before it parks, or this thread sees that it has parked.
      if (not_done.fetch_sub(1) == 1 && caller_parked.load()) {
        const std::lock_guard lock(mutex);
        work_done.notify_one();
      }
    }
  }

  // Does a chunk of this phase that a worker has let go. Whether there was one.
  bool redo_one() {
    for (Worker& worker : workers) {
      std::uint64_t tag = worker.let_go.load(std::memory_order_relaxed);
      if (tag == 0 || tag >> 32 != phase.load(std::memory_order_relaxed)) continue;
      if (!worker.let_go.compare_exchange_strong(tag, 0, std::memory_order_acq_rel)) continue;
      run(static_cast<int>(tag & 0xffffffff) - 1, 0);
      not_done.fetch_sub(1);
      return true;
    }
    return false;
  }

  void worker_loop(int worker_idx) {
    name_this_thread("dunlin-worker");
    Warmer warmer(workers[static_cast<std::size_t>(worker_idx)]);
    std::uint32_t seen = 0;
    const auto ready = [&] { return phase.load() != seen || stop.load(std::memory_order_relaxed); };
    const auto step_aside = [&] {
      if (!leave_core(caller_cpu.load(std::memory_order_relaxed))) sched_yield();
    };
    while (true) {
      if (!wait_awake(kYield, ready, [&] { warmer.step(); }, step_aside)) {
        std::unique_lock lock(mutex);
        num_parked.fetch_add(1);
        work_ready.wait(lock, ready);
        num_parked.fetch_sub(1);
      }
      if (stop.load()) return;
      seen = phase.load();
      work(worker_idx);
    }
  }

  // The workers end; those that have started, where one could not.
  void join() {
    {
      const std::lock_guard lock(mutex);
      stop.store(true);
    }
    work_ready.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  // Shares the units out and opens the phase.
  void open(int chunks, const Fn& function) {
    fn = &function;
    caller_cpu.store(sched_getcpu(), std::memory_order_relaxed);
    num_chunks = chunks;
    unit = (chunks + kMaxUnits - 1) / kMaxUnits;
    const int units = num_units(chunks);
    not_done.store(units, std::memory_order_relaxed);
    const std::uint32_t next = phase.load(std::memory_order_relaxed) + 1;
    const auto count = static_cast<std::int64_t>(workers.size());
    for (std::int64_t i = 0; i < count; ++i) {
      const Run run{next, static_cast<std::uint16_t>(units * i / count),
                    static_cast<std::uint16_t>(units * (i + 1) / count)};
      workers[static_cast<std::size_t>(i)].run.store(run, std::memory_order_release);
    }
    // Sequentially consistent with the read of num_parked: a worker about to park either is
    // counted here or sees this phase before it sleeps.
    phase.store(next);
    if (num_parked.load() > 0) {
      const std::lock_guard lock(mutex);
      work_ready.notify_all();
    }
  }

  void wait_done() {
    const auto done = [&] { return not_done.load() == 0; };
    do {
      if (wait_awake(redoes ? kOverdue : kYield, done, cpu_relax, sched_yield)) return;
    } while (redo_one());
    std::unique_lock lock(mutex);
    caller_parked.store(true);
    work_done.wait(lock, done);
    caller_parked.store(false);
  }
};

ThreadPool::ThreadPool(int num_threads) {
  if (num_threads <= 0) num_threads = default_num_threads();
  impl_ = std::make_unique<Impl>(num_threads);
  impl_->threads.reserve(static_cast<std::size_t>(num_threads - 1));
  try {
    for (int i = 1; i < num_threads; ++i)
      impl_->threads.emplace_back([impl = impl_.get(), i] { impl->worker_loop(i); });
  } catch (...) {
    impl_->join();
    throw;
  }
}

ThreadPool::~ThreadPool() { impl_->join(); }

int ThreadPool::num_threads() const { return static_cast<int>(impl_->workers.size()); }

void ThreadPool::Attempt::let_go() {
  if (let_go_ != nullptr) let_go_->store(tag_, std::memory_order_release);
}

bool ThreadPool::Attempt::take_back() {
  std::uint64_t expected = tag_;
  is_lost_ = let_go_ != nullptr &&
             !let_go_->compare_exchange_strong(expected, 0, std::memory_order_acq_rel);
  return !is_lost_;
}

void ThreadPool::parallel_for(int num_chunks, FunctionRef<void(int, int)> fn) {
  parallel_for_attempts(num_chunks,
                        [fn](Attempt& attempt) { fn(attempt.chunk_idx(), attempt.worker_idx()); });
}

void ThreadPool::parallel_for_attempts(int num_chunks, Fn fn) {
  DUNLIN_CHECK(num_chunks >= 0, "a phase has no negative number of chunks");
  if (num_chunks <= 1 || impl_->threads.empty()) {
    for (int i = 0; i < num_chunks; ++i) {
      Attempt attempt(i, 0);
      fn(attempt);
    }
    return;
  }
  DUNLIN_DCHECK(impl_->not_done.load() == 0, "parallel_for called from inside a chunk");
  impl_->open(num_chunks, fn);
  impl_->work(0);
  impl_->wait_done();
}

void ThreadPool::redo_overdue_chunks() { impl_->redoes = true; }

int ThreadPool::first_chunk(int worker_idx, int num_chunks) const {
  return static_cast<int>(std::int64_t{num_chunks} * worker_idx / num_threads());
}

void ThreadPool::warm(int worker_idx, std::span<const std::byte> bytes) {
  Worker& worker = impl_->workers[static_cast<std::size_t>(worker_idx)];
  worker.warm_size.store(bytes.size(), std::memory_order_relaxed);
  worker.warm.store(bytes.data(), std::memory_order_relaxed);
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
