#include "quant/finite_check.h"

#include <fmt/format.h>

#include "quant/dequantize.h"

namespace dunlin {

FiniteCheck::FiniteCheck(const TensorView& tensor, DType as)
    : tensor_(tensor),
      as_(as),
      row_bytes_(row_bytes(tensor.dtype, tensor.cols())),
      first_bad_row_(tensor.rows()) {}

bool FiniteCheck::is_finite(std::int64_t stored_row) const {
  return all_finite(tensor_.dtype, tensor_.data + stored_row * row_bytes_, tensor_.cols());
}

void FiniteCheck::look_at(std::int64_t stored_row) {
  if (!is_finite(stored_row)) found(stored_row);
}

void FiniteCheck::found(std::int64_t stored_row) {
  std::int64_t seen = first_bad_row_.load();
  while (stored_row < seen && !first_bad_row_.compare_exchange_weak(seen, stored_row)) {
  }
}

Outcome FiniteCheck::outcome() const {
  const std::int64_t row = first_bad_row_.load();
  if (row == tensor_.rows()) return {};
  if (is_finite(row)) {
    return invalid(
        fmt::format("row {} holds a value that is too large for {}; F32 and BF16 hold it", row,
                    dtype_info(as_).name));
  }
  return fail(StatusCode::kDataLoss,
              fmt::format("row {} holds a value that is not a finite number", row));
}

}  // namespace dunlin
