// Floats to stored elements, each rounded to the nearest code: simple, exact to the bit with the
// formats' reference, and no search for better scales. For conversion and tests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace dunlin {

// F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0.
bool can_quantize(DType dtype);

// dst [row_bytes(dtype, n)] = the n finite floats at src; n is a multiple of the block size and
// dtype one that can_quantize() (CHECK). dst may be unaligned.
void quantize(DType dtype, const float* src, std::byte* dst, std::int64_t n);

}  // namespace dunlin
