// What the reserve() calls of the kernels' scratch memory take, for planning.
#pragma once

#include <cstdint>

namespace dunlin {

// Activations::reserve (gemm.h).
std::int64_t activations_bytes(std::int64_t max_tokens, std::int64_t max_cols, bool keep_float);

// AttentionScratch::reserve (attention.h).
std::int64_t attention_scratch_bytes(int num_threads, std::int64_t max_tokens, int num_heads,
                                     int num_kv_heads, int head_dim_k, int head_dim_v);

}  // namespace dunlin
