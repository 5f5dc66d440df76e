// Floats to stored elements. Formats of 32 elements a block round each to the nearest code, exact
// to the bit with the formats' reference; k-quants and IQ4_NL search scales (scale_search.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace dunlin {

// F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ4_NL.
bool can_quantize(DType dtype);

// dst [row_bytes(dtype, n)] = the n finite floats at src; n is a multiple of the block size and
// dtype one that can_quantize() (CHECK). dst may be unaligned. Numbers too large for the format
// become infinities, which all_finite() sees.
void quantize(DType dtype, const float* src, std::byte* dst, std::int64_t n);

}  // namespace dunlin
