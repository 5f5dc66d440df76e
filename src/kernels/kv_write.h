// Puts a token's key and value into the paged cache in stored form. Attention reads nothing else,
// so this step's own tokens are seen rounded, like all others.
#pragma once

#include <cstdint>

#include "cpu/isa.h"
#include "kernels/paged_kv.h"

namespace dunlin {

// k [num_kv_heads, head_dim_k] after RoPE, v [num_kv_heads, head_dim_v] (unused where
// layer.values_in_keys); slot = block * 16 + position in block. Rounds to nearest even; values
// beyond the format's range become its largest finite number (NaN too in F16 and BF16), so that no
// cached number can poison a masked product. Different slots may be written from different workers
// at once.
void kv_write(Isa isa, const PagedKvLayer& layer, std::int64_t slot, const float* k,
              const float* v);

}  // namespace dunlin
