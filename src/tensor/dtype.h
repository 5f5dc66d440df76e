// Element types of stored tensors: plain floats and GGUF's block-quantised formats.
// A block format stores `block_size` consecutive elements of a row in `block_bytes` bytes; rows
// are whole blocks. The bits of each format are described in quant/FORMAT.h.
#pragma once

#include <cstdint>
#include <string_view>

namespace dunlin {

enum class DType : std::uint8_t {
  kF32, kF16, kBF16, kI8, kI16, kI32, kI64, kF64,
  kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0,
  kQ2_K, kQ3_K, kQ4_K, kQ5_K, kQ6_K,
  kIQ4_NL, kIQ4_XS,
};
inline constexpr int kNumDTypes = static_cast<int>(DType::kIQ4_XS) + 1;

struct DTypeInfo {
  std::string_view name;  // as files and users spell it: "F16", "Q4_K"
  int block_size;         // elements a block, 1 for plain types
  int block_bytes;        // bytes a block
};

const DTypeInfo& dtype_info(DType dtype);

// Bytes of a row of `cols` elements; cols must be a multiple of the block size.
std::int64_t row_bytes(DType dtype, std::int64_t cols);

}  // namespace dunlin
