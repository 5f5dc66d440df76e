// The truth for tests: dequantised weights times float activations. Internal to kernels/.
#pragma once

#include <cstdint>

#include "kernels/gemm.h"

namespace dunlin {

// Tokens first .. first + count - 1 of a task; rows: which row of x each token of the task takes,
// or null: 0, 1, ...
struct TokenRange {
  std::int64_t first, count;
  const std::int32_t* rows;
};

// Rows [first_row, last_row) of one task.
void reference_rows(const GemmTask& task, const Activations& x, const TokenRange& tokens,
                    std::int64_t first_row, std::int64_t last_row);

}  // namespace dunlin
