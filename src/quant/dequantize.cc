#include "quant/dequantize.h"

#include <cstring>

#include "base/check.h"
#include "quant/iq4_nl.h"
#include "quant/iq4_xs.h"
#include "quant/q2_k.h"
#include "quant/q3_k.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q4_k.h"
#include "quant/q5_0.h"
#include "quant/q5_1.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"
#include "quant/q8_0.h"

namespace dunlin {
namespace {

template <typename Block>
void dequantize_blocks(const std::byte* src, float* dst, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += Block::kSize) {
    Block block;  // copied: src may be unaligned
    std::memcpy(&block, src, sizeof(Block));
    dequantize_block(block, dst + i);
    src += sizeof(Block);
  }
}

template <typename Stored, typename Convert>
void convert(const std::byte* src, float* dst, std::int64_t n, Convert to_f32) {
  for (std::int64_t i = 0; i < n; ++i) {
    Stored stored;
    std::memcpy(&stored, src + i * static_cast<std::int64_t>(sizeof(Stored)), sizeof(Stored));
    dst[i] = to_f32(stored);
  }
}

}  // namespace

void dequantize(DType dtype, const std::byte* src, float* dst, std::int64_t n) {
  DUNLIN_DCHECK(n % dtype_info(dtype).block_size == 0, "part of a block");
  switch (dtype) {
    case DType::kF32: std::memcpy(dst, src, static_cast<std::size_t>(n) * sizeof(float)); return;
    case DType::kF64:
      return convert<double>(src, dst, n, [](double v) { return static_cast<float>(v); });
    case DType::kF16: return convert<std::uint16_t>(src, dst, n, f16_to_f32);
    case DType::kBF16: return convert<std::uint16_t>(src, dst, n, bf16_to_f32);
    case DType::kQ4_0: return dequantize_blocks<BlockQ4_0>(src, dst, n);
    case DType::kQ4_1: return dequantize_blocks<BlockQ4_1>(src, dst, n);
    case DType::kQ5_0: return dequantize_blocks<BlockQ5_0>(src, dst, n);
    case DType::kQ5_1: return dequantize_blocks<BlockQ5_1>(src, dst, n);
    case DType::kQ8_0: return dequantize_blocks<BlockQ8_0>(src, dst, n);
    case DType::kQ2_K: return dequantize_blocks<BlockQ2K>(src, dst, n);
    case DType::kQ3_K: return dequantize_blocks<BlockQ3K>(src, dst, n);
    case DType::kQ4_K: return dequantize_blocks<BlockQ4K>(src, dst, n);
    case DType::kQ5_K: return dequantize_blocks<BlockQ5K>(src, dst, n);
    case DType::kQ6_K: return dequantize_blocks<BlockQ6K>(src, dst, n);
    case DType::kIQ4_NL: return dequantize_blocks<BlockIq4Nl>(src, dst, n);
    case DType::kIQ4_XS: return dequantize_blocks<BlockIq4Xs>(src, dst, n);
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64: break;
  }
  DUNLIN_CHECK(false, "an integer tensor is no weight");
}

}  // namespace dunlin
