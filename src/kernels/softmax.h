// Softmax of a row and the logarithm of its normaliser. Sums are taken in double in ascending
// order, so the result depends on the instruction set only through the exponential.
#pragma once

#include <cstdint>

#include "cpu/isa.h"

namespace dunlin {

// x_i = exp(x_i) / sum_j exp(x_j), in place. x [n], n >= 1; entries may be -infinity, not all.
void softmax(Isa isa, std::int64_t n, float* x);

// log(sum_j exp(x_j)): a log-probability is x_i minus this.
double log_sum_exp(Isa isa, const float* x, std::int64_t n);

}  // namespace dunlin
