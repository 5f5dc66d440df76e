#include "quant/finite_check.h"

#include <fmt/format.h>

#include "quant/dequantize.h"

namespace dunlin {

FiniteCheck::FiniteCheck(const TensorView& tensor)
    : tensor_(tensor),
      row_bytes_(row_bytes(tensor.dtype, tensor.cols())),
      first_bad_row_(tensor.rows()) {}

void FiniteCheck::look_at(std::int64_t stored_row) {
  if (all_finite(tensor_.dtype, tensor_.data + stored_row * row_bytes_, tensor_.cols())) return;
  std::int64_t seen = first_bad_row_.load();
  while (stored_row < seen && !first_bad_row_.compare_exchange_weak(seen, stored_row)) {
  }
}

Outcome FiniteCheck::outcome() const {
  const std::int64_t row = first_bad_row_.load();
  if (row == tensor_.rows()) return {};
  return fail(StatusCode::kDataLoss,
              fmt::format("row {} holds a value that is not a finite number", row));
}

}  // namespace dunlin
