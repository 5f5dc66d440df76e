// Floats to the k-quant formats: 256 elements a block, a scale (and minimum) for each 16 or 32 of
// them by least squares (quant/scale_search.h), those in few bits over one for the block.
#pragma once

#include "quant/q2_k.h"
#include "quant/q3_k.h"
#include "quant/q4_k.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"

namespace dunlin {

// src [256], finite. Numbers too large for the format make `d` infinite.
void quantize_block(const float* src, BlockQ2K& block);
void quantize_block(const float* src, BlockQ3K& block);
void quantize_block(const float* src, BlockQ4K& block);
void quantize_block(const float* src, BlockQ5K& block);
void quantize_block(const float* src, BlockQ6K& block);

}  // namespace dunlin
