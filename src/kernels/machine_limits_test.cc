#include "kernels/machine_limits.h"

#include <gtest/gtest.h>

#include "cpu/thread_pool.h"

namespace dunlin {
namespace {

TEST(MachineLimits, AreMeasuredInEveryInstructionSet) {
  ThreadPool pool(2);
  for (const Isa isa : supported_isas()) {
    const MachineLimits limits =
        measure_machine(pool, isa, {.buffer_bytes = std::int64_t{4} << 20, .rounds = 1});
    EXPECT_EQ(limits.num_threads, 2);
    for (const double speed : {limits.read_bytes_per_s, limits.int8_unsigned_ops,
                               limits.int8_signed_ops, limits.float_ops}) {
      EXPECT_GT(speed, 1e6) << isa_name(isa);  // no machine is slower than this by far
      EXPECT_LT(speed, 1e15) << isa_name(isa);
    }
  }
}

}  // namespace
}  // namespace dunlin
