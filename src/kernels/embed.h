// Embedding rows of a step's tokens.
#pragma once

#include <cstdint>
#include <span>

#include "cpu/thread_pool.h"
#include "quant/packed_matrix.h"

namespace dunlin {

// out [num_tokens, table.cols()] = scale * row ids[t] of the table. Ids are within the table
// (checked where a request enters).
void embed(ThreadPool& pool, const PackedMatrix& table, std::span<const std::int32_t> ids,
           float scale, float* out);

}  // namespace dunlin
