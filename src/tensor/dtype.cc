#include "tensor/dtype.h"

#include <array>

#include "base/check.h"

namespace dunlin {
namespace {

constexpr std::array<DTypeInfo, kNumDTypes> kInfo = {{
    {"F32", 1, 4}, {"F16", 1, 2}, {"BF16", 1, 2}, {"I8", 1, 1}, {"I16", 1, 2}, {"I32", 1, 4},
    {"I64", 1, 8}, {"F64", 1, 8},
    {"Q4_0", 32, 18}, {"Q4_1", 32, 20}, {"Q5_0", 32, 22}, {"Q5_1", 32, 24}, {"Q8_0", 32, 34},
    {"Q2_K", 256, 84}, {"Q3_K", 256, 110}, {"Q4_K", 256, 144}, {"Q5_K", 256, 176},
    {"Q6_K", 256, 210},
    {"IQ4_NL", 32, 18}, {"IQ4_XS", 256, 136},
}};

}  // namespace

const DTypeInfo& dtype_info(DType dtype) { return kInfo[static_cast<std::size_t>(dtype)]; }

std::int64_t row_bytes(DType dtype, std::int64_t cols) {
  const DTypeInfo& info = dtype_info(dtype);
  DUNLIN_DCHECK(cols % info.block_size == 0, "a row must be whole blocks");
  return cols / info.block_size * info.block_bytes;
}

}  // namespace dunlin
