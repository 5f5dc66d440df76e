// Stored elements to floats, one row or part of a row: plain loops, exact, the meaning of each
// format. Every weight and float DType; integers of other widths are no weights (CHECK).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace dunlin {

// dst [n] = the n elements at src; n is a multiple of the block size. src may be unaligned.
void dequantize(DType dtype, const std::byte* src, float* dst, std::int64_t n);

// Whether all n elements at src are finite numbers. Of block formats only the stored scales can be
// anything else, so only they are read.
bool all_finite(DType dtype, const std::byte* src, std::int64_t n);

float f16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_f16(float value);  // round to nearest even
float bf16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_bf16(float value);

}  // namespace dunlin
