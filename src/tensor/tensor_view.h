// A non-owning view of a stored tensor, row-major, last dimension contiguous.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace dunlin {

struct TensorView {
  DType dtype = DType::kF32;
  int rank = 0;                             // 1 to 4
  std::array<std::int64_t, 4> shape{};      // outermost first; unused entries are 1
  const std::byte* data = nullptr;          // may be unaligned inside a mapped file

  // The view as a matrix: cols is the last dimension, rows the product of the others.
  std::int64_t cols() const { return shape[static_cast<std::size_t>(rank - 1)]; }
  std::int64_t rows() const {
    std::int64_t n = 1;
    for (int i = 0; i + 1 < rank; ++i) n *= shape[static_cast<std::size_t>(i)];
    return n;
  }
  std::int64_t num_elements() const { return rows() * cols(); }
  std::int64_t size_bytes() const { return rows() * row_bytes(dtype, cols()); }
};

}  // namespace dunlin
