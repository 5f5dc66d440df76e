// Looks for a value that is not a finite number, row by row, from any thread: at load and by
// inspect. One such weight turns every token into the same wrong one.
#pragma once

#include <atomic>
#include <cstdint>

#include "dunlin/status.h"
#include "tensor/tensor_view.h"

namespace dunlin {

class FiniteCheck {
 public:
  // `tensor` must stay valid and be of a weight type.
  explicit FiniteCheck(const TensorView& tensor);

  // Reads a stored row. Thread-safe.
  void look_at(std::int64_t stored_row);

  // kDataLoss, naming the first bad row of those looked at. Call it when all have been.
  Outcome outcome() const;

 private:
  const TensorView& tensor_;
  const std::int64_t row_bytes_;
  std::atomic<std::int64_t> first_bad_row_;
};

}  // namespace dunlin
