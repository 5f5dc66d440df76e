#include "kernels/machine_limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "cpu/thread_pool.h"
#include "kernels/limit_loops.h"
#include "tensor/buffer.h"

namespace dunlin {
namespace {

const LimitLoops& loops_of(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAmx) return amx_limit_loops;
  if (isa == Isa::kAvx512) return avx512_limit_loops;
  if (isa == Isa::kAvx2) return avx2_limit_loops;
#elif defined(__aarch64__)
  if (isa == Isa::kNeon) return neon_limit_loops;
#endif
  return portable_limit_loops;
}

template <typename F>
double seconds_of(F fn) {
  const auto start = std::chrono::steady_clock::now();
  fn();
  return seconds_since(start);
}

std::atomic<std::uint64_t> sink{0};

// The best of the rounds, over chunks of 1 MiB that the threads take in turn.
double read_speed(ThreadPool& pool, const LimitLoops& loops, const LimitOptions& options) {
  constexpr std::int64_t kChunk = std::int64_t{1} << 20;
  const auto num_chunks =
      static_cast<int>(std::max<std::int64_t>(1, options.buffer_bytes / kChunk));
  Buffer buffer(static_cast<std::size_t>(num_chunks * kChunk));
  pool.parallel_for(num_chunks, [&](int chunk, int) {
    std::memset(buffer.data() + chunk * kChunk, chunk, kChunk);
  });
  double best = 0;
  for (int round = 0; round < options.rounds; ++round) {
    const double seconds = seconds_of([&] {
      pool.parallel_for(num_chunks, [&](int chunk, int) {
        sink += loops.read(buffer.data() + chunk * kChunk, kChunk);
      });
    });
    best = std::max(best, static_cast<double>(num_chunks * kChunk) / seconds);
  }
  return best;
}

using Loop = std::int64_t (*)(std::int64_t rounds, std::uint64_t* sink);

// The best of the rounds. Every thread has the same work, cut so fine that one that is held up
// leaves its share to the others.
double loop_speed(ThreadPool& pool, Loop loop, int rounds) {
  constexpr std::int64_t kRounds = 20'000;
  const int num_chunks = 32 * pool.num_threads();
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    std::atomic<std::int64_t> ops{0};
    const double seconds = seconds_of([&] {
      pool.parallel_for(num_chunks, [&](int, int) {
        std::uint64_t local = 0;
        ops += loop(kRounds, &local);
        sink += local;
      });
    });
    best = std::max(best, static_cast<double>(ops) / seconds);
  }
  return best;
}

}  // namespace

double measure_read_speed(ThreadPool& pool, Isa isa, const LimitOptions& options) {
  return read_speed(pool, loops_of(isa), options);
}

MachineLimits measure_machine(ThreadPool& pool, Isa isa, const LimitOptions& options) {
  const LimitLoops& loops = loops_of(isa);
  MachineLimits limits;
  limits.num_threads = pool.num_threads();
  limits.read_bytes_per_s = read_speed(pool, loops, options);
  limits.int8_unsigned_ops = loop_speed(pool, loops.int8_unsigned, options.rounds);
  limits.int8_signed_ops = loop_speed(pool, loops.int8_signed, options.rounds);
  limits.float_ops = loop_speed(pool, loops.floats, options.rounds);
  return limits;
}

}  // namespace dunlin
