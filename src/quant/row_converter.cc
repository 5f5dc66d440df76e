#include "quant/row_converter.h"

#include <cstring>

#include "quant/dequantize.h"
#include "quant/quantize.h"

namespace dunlin {

RowConverter::RowConverter(DType from, DType to, std::int64_t cols)
    : from_(from), to_(to), cols_(cols), floats_(from == to ? 0 : static_cast<std::size_t>(cols)) {}

bool RowConverter::convert(const std::byte* src, std::byte* dst) {
  if (!all_finite(from_, src, cols_)) return false;
  if (from_ == to_) {
    std::memcpy(dst, src, static_cast<std::size_t>(row_bytes(to_, cols_)));
    return true;
  }
  dequantize(from_, src, floats_.data(), cols_);
  quantize(to_, floats_.data(), dst, cols_);
  return all_finite(to_, dst, cols_);
}

}  // namespace dunlin
