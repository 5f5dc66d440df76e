// A weight matrix [rows, cols] in the layout the kernels read: panels of 16 rows interleaved so
// that one pass streams them at bandwidth, the quantised bits kept. One layout a format, the same
// in every instruction set and for any number of tokens; the order of its sums over K is part of
// the contract (kernels/gemm.h). Rows are padded to whole panels with zero weights.
#pragma once

#include <cstdint>

#include "cpu/isa.h"
#include "cpu/thread_pool.h"
#include "dunlin/status.h"
#include "quant/panel_bits.h"
#include "tensor/buffer.h"
#include "tensor/row_order.h"
#include "tensor/tensor_view.h"

namespace dunlin {

class PackedMatrix {
 public:
  PackedMatrix() = default;

  // Packs one matrix alone; Packer (quant/packer.h) packs many and says what the refusal means.
  static Result<PackedMatrix> pack(const TensorView& source, RowOrder row_order, Isa isa,
                                   ThreadPool& pool);

  DType dtype() const { return dtype_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  std::int64_t num_panels() const { return (rows_ + kPanelRows - 1) / kPanelRows; }
  std::int64_t panel_bytes() const { return panel_bytes_; }
  std::int64_t size_bytes() const { return static_cast<std::int64_t>(data_.size()); }
  const std::byte* panel(std::int64_t idx) const { return data_.data() + idx * panel_bytes_; }

  // out [cols] = row `row` as floats: the embedding look-up of a tied head.
  void dequantize_row(std::int64_t row, float* out) const;

 private:
  friend class Packer;
  DType dtype_ = DType::kF32;
  Isa isa_ = Isa::kReference;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::int64_t panel_bytes_ = 0;
  Buffer data_;
};

}  // namespace dunlin
