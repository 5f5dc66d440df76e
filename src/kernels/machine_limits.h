// What this machine can do at most: the loops that linear layers consist of, without anything
// else. A kernel's speed is judged as a share of these, measured in the same run.
#pragma once

#include <cstdint>

#include "cpu/isa.h"

namespace dunlin {

class ThreadPool;

struct MachineLimits {
  int num_threads = 0;
  double read_bytes_per_s = 0;   // sequential reads of a buffer far larger than the caches
  double int8_unsigned_ops = 0;  // u8 x s8 products and sums a second (2 ops each): formats of
                                 // 6 bits or fewer; on AVX-512 every block format
  double int8_signed_ops = 0;    // s8 x s8, by |w| x sign(x, w): Q8_0 and IQ4 on AVX2
  double float_ops = 0;          // fused multiply-adds (2 ops each): F32, F16, BF16, attention
};

struct LimitOptions {
  std::int64_t buffer_bytes = std::int64_t{1} << 30;  // read once a round
  int rounds = 5;                                     // the best counts
};

// Takes about a second. All threads of `pool` work at once. Without vector loops of its own an
// instruction set is measured by the portable ones.
MachineLimits measure_machine(ThreadPool& pool, Isa isa, const LimitOptions& options = {});

// read_bytes_per_s alone.
double measure_read_speed(ThreadPool& pool, Isa isa, const LimitOptions& options = {});

}  // namespace dunlin
