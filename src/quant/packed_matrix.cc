#include "quant/packed_matrix.h"

#include "base/check.h"
#include "quant/dequantize.h"
#include "quant/packer.h"
#include "quant/panel_codec.h"

namespace dunlin {
Result<PackedMatrix> PackedMatrix::pack(const TensorView& source, RowOrder row_order, Isa isa,
                                        ThreadPool& pool) {
  PackedMatrix matrix;
  Packer packer(isa);
  packer.add(source, row_order, matrix);
  packer.run(pool, [](std::size_t) {});
  DUNLIN_TRY(packer.outcome(0));
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
