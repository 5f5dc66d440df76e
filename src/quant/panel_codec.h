// Packing and unpacking of one panel, by element type: the table behind PackedMatrix.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/packed_matrix.h"
#include "tensor/dtype.h"

namespace dunlin {

struct PanelCodec {
  std::int64_t (*panel_bytes)(std::int64_t cols);
  // rows [16]: the stored rows, null where the matrix has ended. panel: zeroed, 64-byte aligned.
  void (*pack)(const std::byte* const* rows, std::int64_t cols, std::byte* panel);
  // Whether every value of the packed panel is a finite number.
  bool (*is_finite)(const std::byte* panel, std::int64_t cols);
  // out [cols] = row `row` (0 to 15) of the panel.
  void (*dequantize_row)(const std::byte* panel, int row, std::int64_t cols, float* out);
};

// CHECKs that the type is a weight format.
const PanelCodec& panel_codec(DType dtype);

}  // namespace dunlin
