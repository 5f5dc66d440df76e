// What architectures' files make of stored tensors (HfTensorName::transform).
#pragma once

#include <cstdint>

#include "dunlin/status.h"
#include "model/registry.h"
#include "tensor/tensor_view.h"

namespace dunlin {

// A vector of F32, F16 or BF16 with 1 added to each element, as F32: Gemma's norms. An HfTransform.
Result<MadeTensor> plus_one(const HfConfig& config, const TensorView& stored);

// Of num_heads equal parts of a matrix's rows: from each, rows [first, first + count), as they are
// stored. [num_heads, count, cols]
Result<MadeTensor> rows_of_heads(const TensorView& stored, std::int64_t num_heads,
                                 std::int64_t first, std::int64_t count);
// Rows of Q, K and V in each of num_groups equal parts, q, kv and kv of them: all of Q, then K,
// then V. [num_groups * (q + 2 kv), cols]; of a vector likewise
Result<MadeTensor> qkv_of_groups(const TensorView& stored, std::int64_t num_groups, std::int64_t q,
                                 std::int64_t kv);
// As rows_of_heads, with each head's rows as columns. [num_heads, cols, count]
Result<MadeTensor> columns_of_heads(const TensorView& stored, std::int64_t num_heads,
                                    std::int64_t first, std::int64_t count);

// Columns first, first + step, ... of a tensor [..., n] of plain floats: [..., n / step].
Result<MadeTensor> strided_columns(const TensorView& stored, std::int64_t first, std::int64_t step);

// The same of [experts, in, n], each expert transposed: [experts, n / step, in].
Result<MadeTensor> transposed_columns(const TensorView& stored, std::int64_t first,
                                      std::int64_t step);

// A matrix of plain floats the other way round.
Result<MadeTensor> transposed(const TensorView& stored);

}  // namespace dunlin
