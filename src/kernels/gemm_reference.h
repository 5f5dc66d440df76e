// The truth for tests: dequantised weights times float activations. Internal to kernels/.
#pragma once

#include <cstdint>

#include "kernels/gemm.h"

namespace dunlin {

// Rows [first_row, last_row) of one task, for all tokens.
void reference_rows(const GemmTask& task, const Activations& x, std::int64_t num_tokens,
                    const std::int32_t* token_rows, std::int64_t first_row, std::int64_t last_row);

}  // namespace dunlin
