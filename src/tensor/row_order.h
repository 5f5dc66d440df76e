// Which stored row holds canonical row r. GGUF files of the llama family store Q and K rows with
// the two RoPE halves interleaved: canonical row (head h, index j) is stored row
// (h, j < head_dim/2 ? 2j : 2(j - head_dim/2) + 1).
#pragma once

#include <cstdint>

namespace dunlin {

struct RowOrder {
  int interleaved_head_dim = 0;  // 0: identity

  std::int64_t stored_row(std::int64_t row) const {
    if (interleaved_head_dim == 0) return row;
    const std::int64_t head = row / interleaved_head_dim, j = row % interleaved_head_dim;
    const std::int64_t half = interleaved_head_dim / 2;
    return head * interleaved_head_dim + (j < half ? 2 * j : 2 * (j - half) + 1);
  }
};

}  // namespace dunlin
