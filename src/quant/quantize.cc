#include "quant/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "quant/dequantize.h"
#include "quant/iq4_quantizer.h"
#include "quant/k_quants.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q5_0.h"
#include "quant/q5_1.h"
#include "quant/q8_0.h"

namespace dunlin {
namespace {

// 1 / scale; 0 where that is infinite, for a scale which is zero in f16 anyway.
float inverse(float scale) {
  return std::fabs(scale) < std::numeric_limits<float>::min() ? 0.0f : 1.0f / scale;
}

// The element furthest from zero, with its sign; the first of equals.
float signed_extreme(const float* src) {
  float extreme = src[0];
  for (int j = 1; j < 32; ++j) {
    if (std::fabs(src[j]) > std::fabs(extreme)) extreme = src[j];
  }
  return extreme;
}

// The code of `scaled`, which is not below -0.5: cut off at `max`.
int code(float scaled, float bias, int max) {
  return std::min(static_cast<int>(scaled + bias), max);
}

// Symmetric: the extreme gets code 0, zero the middle code, which needs scale = extreme / -middle.
void quantize_symmetric(const float* src, int bits, std::uint16_t& d, int* codes) {
  const int middle = 1 << (bits - 1);
  const float scale = signed_extreme(src) / static_cast<float>(-middle);
  const float inverse_scale = inverse(scale);
  for (int j = 0; j < 32; ++j) {
    codes[j] = code(src[j] * inverse_scale, static_cast<float>(middle) + 0.5f, 2 * middle - 1);
  }
  d = f32_to_f16(scale);
}

void quantize_with_min(const float* src, int bits, std::uint16_t& d, std::uint16_t& m, int* codes) {
  const auto [min, max] = std::minmax_element(src, src + 32);
  const int max_code = (1 << bits) - 1;
  const float scale = (*max - *min) / static_cast<float>(max_code);
  const float inverse_scale = inverse(scale);
  for (int j = 0; j < 32; ++j) codes[j] = code((src[j] - *min) * inverse_scale, 0.5f, max_code);
  d = f32_to_f16(scale);
  m = f32_to_f16(*min);
}

void store_low_bits(const int* codes, std::uint8_t* qs) {
  for (int j = 0; j < 16; ++j) {
    qs[j] = static_cast<std::uint8_t>((codes[j] & 0xF) | (codes[j + 16] & 0xF) << 4);
  }
}

void store_fifth_bits(const int* codes, std::uint8_t* qh) {
  std::memset(qh, 0, 4);
  for (int j = 0; j < 32; ++j) {
    qh[j / 8] = static_cast<std::uint8_t>(qh[j / 8] | (codes[j] >> 4) << (j % 8));
  }
}

void quantize_block(const float* src, BlockQ4_0& block) {
  int codes[32];
  quantize_symmetric(src, 4, block.d, codes);
  store_low_bits(codes, block.qs);
}

void quantize_block(const float* src, BlockQ4_1& block) {
  int codes[32];
  quantize_with_min(src, 4, block.d, block.m, codes);
  store_low_bits(codes, block.qs);
}

void quantize_block(const float* src, BlockQ5_0& block) {
  int codes[32];
  quantize_symmetric(src, 5, block.d, codes);
  store_low_bits(codes, block.qs);
  store_fifth_bits(codes, block.qh);
}

void quantize_block(const float* src, BlockQ5_1& block) {
  int codes[32];
  quantize_with_min(src, 5, block.d, block.m, codes);
  store_low_bits(codes, block.qs);
  store_fifth_bits(codes, block.qh);
}

void quantize_block(const float* src, BlockQ8_0& block) {
  const float scale = std::fabs(signed_extreme(src)) / 127.0f;
  const float inverse_scale = inverse(scale);
  for (int j = 0; j < 32; ++j) {
    block.qs[j] = static_cast<std::int8_t>(std::round(src[j] * inverse_scale));
  }
  block.d = f32_to_f16(scale);
}

template <typename Block>
void quantize_blocks(const float* src, std::byte* dst, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += Block::kSize) {
    Block block;
    quantize_block(src + i, block);
    std::memcpy(dst, &block, sizeof(Block));
    dst += sizeof(Block);
  }
}

void convert(const float* src, std::byte* dst, std::int64_t n, std::uint16_t (*to_half)(float)) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint16_t half = to_half(src[i]);
    std::memcpy(dst + 2 * i, &half, 2);
  }
}

}  // namespace

bool can_quantize(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ8_0:
    case DType::kQ2_K:
    case DType::kQ3_K:
    case DType::kQ4_K:
    case DType::kQ5_K:
    case DType::kQ6_K:
    case DType::kIQ4_NL: return true;
    default: return false;
  }
}

void quantize(DType dtype, const float* src, std::byte* dst, std::int64_t n) {
  DUNLIN_DCHECK(n % dtype_info(dtype).block_size == 0, "part of a block");
  switch (dtype) {
    case DType::kF32: std::memcpy(dst, src, static_cast<std::size_t>(n) * sizeof(float)); return;
    case DType::kF16: return convert(src, dst, n, f32_to_f16);
    case DType::kBF16: return convert(src, dst, n, f32_to_bf16);
    case DType::kQ4_0: return quantize_blocks<BlockQ4_0>(src, dst, n);
    case DType::kQ4_1: return quantize_blocks<BlockQ4_1>(src, dst, n);
    case DType::kQ5_0: return quantize_blocks<BlockQ5_0>(src, dst, n);
    case DType::kQ5_1: return quantize_blocks<BlockQ5_1>(src, dst, n);
    case DType::kQ8_0: return quantize_blocks<BlockQ8_0>(src, dst, n);
    case DType::kQ2_K: return quantize_blocks<BlockQ2K>(src, dst, n);
    case DType::kQ3_K: return quantize_blocks<BlockQ3K>(src, dst, n);
    case DType::kQ4_K: return quantize_blocks<BlockQ4K>(src, dst, n);
    case DType::kQ5_K: return quantize_blocks<BlockQ5K>(src, dst, n);
    case DType::kQ6_K: return quantize_blocks<BlockQ6K>(src, dst, n);
    case DType::kIQ4_NL: return quantize_iq4_nl(src, dst, n);
    default: DUNLIN_CHECK(false, "no quantiser for this format");
  }
}

}  // namespace dunlin
