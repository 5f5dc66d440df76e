// Rows of a step shared out over the pool, in chunks large enough to be worth handing out.
// Internal to kernels/ and model/.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/thread_pool.h"

namespace dunlin {

// Calls fn(row) once for each row of n elements. A chunk is about 16 Ki elements (some 10 us of
// element-wise work), so one decoded token stays on the calling thread.
template <typename F>
void for_rows(ThreadPool& pool, std::int64_t num_rows, std::int64_t n, F fn) {
  const std::int64_t per_chunk = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, n));
  const auto num_chunks = static_cast<int>((num_rows + per_chunk - 1) / per_chunk);
  const auto run = [&](int chunk, int) {
    const std::int64_t end = std::min(num_rows, (chunk + 1) * per_chunk);
    for (std::int64_t row = chunk * per_chunk; row < end; ++row) fn(row);
  };
  if (num_chunks == 1)
    run(0, 0);
  else
    pool.parallel_for(num_chunks, run);
}

}  // namespace dunlin
