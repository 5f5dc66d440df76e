// Rows of one element type written as another, with a look at every value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor/dtype.h"

namespace dunlin {

class RowConverter {
 public:
  // `from` a weight type; `to` the same or one that can_quantize(), with rows of whole blocks.
  RowConverter(DType from, DType to, std::int64_t cols);

  // dst [row_bytes(to, cols)] = the row at src. False where a value is not a finite number, or
  // becomes none in `to`: dst is then of no use.
  bool convert(const std::byte* src, std::byte* dst);

 private:
  DType from_, to_;
  std::int64_t cols_;
  std::vector<float> floats_;  // empty where the types are the same
};

}  // namespace dunlin
