// Floats to IQ4_NL (quant/iq4_nl.h): the scale of a block is searched by least squares, as those of
// k-quants are (quant/scale_search.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace dunlin {

// dst [18 * n / 32] = the n finite floats at src, n whole blocks of 32. dst may be unaligned. The
// scale of numbers too large for it becomes infinite.
void quantize_iq4_nl(const float* src, std::byte* dst, std::int64_t n);

}  // namespace dunlin
