// Looks for a value that is not a finite number, row by row, from any thread: at load, by inspect
// and by convert. One such weight turns every token into the same wrong one.
#pragma once

#include <atomic>
#include <cstdint>

#include "dunlin/status.h"
#include "tensor/tensor_view.h"

namespace dunlin {

class FiniteCheck {
 public:
  // `tensor` must stay valid and be of a weight type. `as`: what it is converted to.
  FiniteCheck(const TensorView& tensor, DType as);
  explicit FiniteCheck(const TensorView& tensor) : FiniteCheck(tensor, tensor.dtype) {}

  // Reads a stored row. Thread-safe.
  void look_at(std::int64_t stored_row);
  // The row was found to hold such a value, as stored or as converted. Thread-safe.
  void found(std::int64_t stored_row);

  // kDataLoss, naming the first bad row of those looked at and found; kInvalidArgument where it is
  // bad as converted only. Call it when all have been.
  Outcome outcome() const;

 private:
  bool is_finite(std::int64_t stored_row) const;

  const TensorView& tensor_;
  const DType as_;
  const std::int64_t row_bytes_;
  std::atomic<std::int64_t> first_bad_row_;
};

}  // namespace dunlin
