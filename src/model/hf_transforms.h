// What architectures' files make of stored tensors (HfTensorName::transform). Shapes are checked at
// once; a Status says what a tensor "has" or "is", for the caller to put its name in front.
#pragma once

#include <cstdint>

#include "dunlin/status.h"
#include "model/lazy_tensor.h"
#include "model/registry.h"

namespace dunlin {

// A vector of F32, F16 or BF16 with 1 added to each element, as F32: Gemma's norms. An HfTransform.
Result<LazyTensor> plus_one(const HfConfig& config, const LazyTensor& stored);

// Of num_heads equal parts of a matrix's rows: from each, rows [first, first + count), as they are
// stored. [num_heads, count, cols]
Result<LazyTensor> rows_of_heads(const LazyTensor& stored, std::int64_t num_heads,
                                 std::int64_t first, std::int64_t count);
// Rows of Q, K and V in each of num_groups equal parts, q, kv and kv of them: all of Q, then K,
// then V. [num_groups * (q + 2 kv), cols]; of a vector likewise
Result<LazyTensor> qkv_of_groups(const LazyTensor& stored, std::int64_t num_groups, std::int64_t q,
                                 std::int64_t kv);
// As rows_of_heads, with each head's rows as columns. [num_heads, cols, count]
Result<LazyTensor> columns_of_heads(const LazyTensor& stored, std::int64_t num_heads,
                                    std::int64_t first, std::int64_t count);

// Columns first, first + step, ... of a tensor [..., n] of plain floats: [..., n / step].
Result<LazyTensor> strided_columns(const LazyTensor& stored, std::int64_t first, std::int64_t step);

// Rows first, first + step, ... of [experts, n, cols] of any type: [experts, n / step, cols].
Result<LazyTensor> strided_rows(const LazyTensor& stored, std::int64_t first, std::int64_t step);

// Columns as above of [experts, in, n], each expert transposed: [experts, n / step, in].
Result<LazyTensor> transposed_columns(const LazyTensor& stored, std::int64_t first,
                                      std::int64_t step);

// A matrix of plain floats the other way round.
Result<LazyTensor> transposed(const LazyTensor& stored);

}  // namespace dunlin
