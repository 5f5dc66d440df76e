#include "quant/packed_matrix.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "quant/dequantize.h"

namespace dunlin {

PackedMatrix PackedMatrix::pack(const TensorView& source, RowOrder row_order, Isa isa,
                                ThreadPool& pool) {
  PackedMatrix matrix;
  matrix.dtype_ = source.dtype;
  matrix.isa_ = isa;
  matrix.rows_ = source.rows();
  matrix.cols_ = source.cols();
  DUNLIN_CHECK(isa == Isa::kReference, "only the reference keeps matrices so far");
  const std::int64_t bytes = row_bytes(source.dtype, source.cols());
  matrix.panel_bytes_ = bytes * kPanelRows;
  matrix.data_ = Buffer(static_cast<std::size_t>(matrix.num_panels() * matrix.panel_bytes_));
  pool.parallel_for(static_cast<int>(matrix.num_panels()), [&](int panel_idx, int) {
    const std::int64_t first = std::int64_t{panel_idx} * kPanelRows;
    std::byte* out = matrix.data_.data() + panel_idx * matrix.panel_bytes_;
    for (std::int64_t r = first; r < std::min(first + kPanelRows, matrix.rows_); ++r) {
      std::memcpy(out + (r - first) * bytes, source.data + row_order.stored_row(r) * bytes,
                  static_cast<std::size_t>(bytes));
    }
  });
  return matrix;
}

void PackedMatrix::dequantize_row(std::int64_t row, float* out) const {
  DUNLIN_DCHECK(row >= 0 && row < rows_, "row outside the matrix");
  const std::int64_t bytes = panel_bytes_ / kPanelRows;
  dequantize(dtype_, panel(row / kPanelRows) + row % kPanelRows * bytes, out, cols_);
}

}  // namespace dunlin
