#include "quant/packed_matrix.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "quant/dequantize.h"
#include "quant/finite_check.h"
#include "quant/panel_codec.h"

namespace dunlin {
namespace {

// Weights a chunk: about 50 us of packing.
constexpr std::int64_t kChunkWeights = 64 * 1024;

}  // namespace

Result<PackedMatrix> PackedMatrix::pack(const TensorView& source, RowOrder row_order, Isa isa,
                                        ThreadPool& pool) {
  PackedMatrix matrix;
  matrix.dtype_ = source.dtype;
  matrix.isa_ = isa;
  matrix.rows_ = source.rows();
  matrix.cols_ = source.cols();
  const std::int64_t stored_bytes = row_bytes(source.dtype, source.cols());
  const PanelCodec& codec = panel_codec(source.dtype);
  const bool as_stored = isa == Isa::kReference;
  matrix.panel_bytes_ = as_stored ? stored_bytes * kPanelRows : codec.panel_bytes(matrix.cols_);
  matrix.data_ = Buffer(static_cast<std::size_t>(matrix.num_panels() * matrix.panel_bytes_));

  FiniteCheck finite(source);
  const auto pack_one = [&](std::int64_t panel) {
    const std::byte* rows[kPanelRows] = {};
    const std::int64_t first = panel * kPanelRows;
    const std::int64_t count = std::min<std::int64_t>(kPanelRows, matrix.rows_ - first);
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t stored_row = row_order.stored_row(first + r);
      finite.look_at(stored_row);
      rows[r] = source.data + stored_row * stored_bytes;
    }
    std::byte* out = matrix.data_.data() + panel * matrix.panel_bytes_;
    if (!as_stored) return codec.pack(rows, matrix.cols_, out);
    for (std::int64_t r = 0; r < count; ++r) {
      std::memcpy(out + r * stored_bytes, rows[r], static_cast<std::size_t>(stored_bytes));
    }
  };
  const std::int64_t panels = matrix.num_panels();
  const std::int64_t per_chunk = std::max<std::int64_t>(
      1, kChunkWeights / std::max<std::int64_t>(1, matrix.cols_ * kPanelRows));
  pool.parallel_for(static_cast<int>((panels + per_chunk - 1) / per_chunk), [&](int chunk, int) {
    const std::int64_t end = std::min(panels, (chunk + 1) * per_chunk);
    for (std::int64_t panel = chunk * per_chunk; panel < end; ++panel) pack_one(panel);
  });
  DUNLIN_TRY(finite.outcome());
  return matrix;
}

void PackedMatrix::dequantize_row(std::int64_t row, float* out) const {
  DUNLIN_DCHECK(row >= 0 && row < rows_, "row outside the matrix");
  const std::byte* data = panel(row / kPanelRows);
  const int in_panel = static_cast<int>(row % kPanelRows);
  if (isa_ == Isa::kReference) {
    dequantize(dtype_, data + in_panel * (panel_bytes_ / kPanelRows), out, cols_);
  } else {
    panel_codec(dtype_).dequantize_row(data, in_panel, cols_, out);
  }
}

}  // namespace dunlin
