#include "quant/dequantize.h"

#include <bit>
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

// Element or block `idx` of the array at src, which may be unaligned.
template <typename T>
T load(const std::byte* src, std::int64_t idx) {
  T value;
  std::memcpy(&value, src + idx * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

constexpr std::uint16_t kF16Exponent = 0x7C00;

template <typename Bits>
bool is_finite(Bits bits, Bits exponent) {
  return (bits & exponent) != exponent;
}

// Calls fn.block<Block>() or fn.plain<Stored>(exponent, to_f32) for the element type: the one list
// of formats. `exponent`: the bits that are all set in infinities and NaNs.
template <typename Fn>
auto visit_format(DType dtype, Fn fn) {
  switch (dtype) {
    case DType::kF32:
      return fn.template plain<std::uint32_t>(
          0x7F800000u, [](std::uint32_t bits) { return std::bit_cast<float>(bits); });
    case DType::kF64:
      return fn.template plain<std::uint64_t>(std::uint64_t{0x7FF} << 52, [](std::uint64_t bits) {
        return static_cast<float>(std::bit_cast<double>(bits));
      });
    case DType::kF16: return fn.template plain<std::uint16_t>(kF16Exponent, f16_to_f32);
    case DType::kBF16: return fn.template plain<std::uint16_t>(std::uint16_t{0x7F80}, bf16_to_f32);
    case DType::kQ4_0: return fn.template block<BlockQ4_0>();
    case DType::kQ4_1: return fn.template block<BlockQ4_1>();
    case DType::kQ5_0: return fn.template block<BlockQ5_0>();
    case DType::kQ5_1: return fn.template block<BlockQ5_1>();
    case DType::kQ8_0: return fn.template block<BlockQ8_0>();
    case DType::kQ2_K: return fn.template block<BlockQ2K>();
    case DType::kQ3_K: return fn.template block<BlockQ3K>();
    case DType::kQ4_K: return fn.template block<BlockQ4K>();
    case DType::kQ5_K: return fn.template block<BlockQ5K>();
    case DType::kQ6_K: return fn.template block<BlockQ6K>();
    case DType::kIQ4_NL: return fn.template block<BlockIq4Nl>();
    case DType::kIQ4_XS: return fn.template block<BlockIq4Xs>();
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64: break;
  }
  DUNLIN_CHECK(false, "an integer tensor is no weight");
}

struct Dequantize {
  const std::byte* src;
  float* dst;
  std::int64_t n;

  template <typename Block>
  void block() {
    for (std::int64_t i = 0; i < n; i += Block::kSize) {
      dequantize_block(load<Block>(src, i / Block::kSize), dst + i);
    }
  }
  template <typename Stored, typename Convert>
  void plain(Stored, Convert to_f32) {
    for (std::int64_t i = 0; i < n; ++i) dst[i] = to_f32(load<Stored>(src, i));
  }
};

struct AllFinite {
  const std::byte* src;
  std::int64_t n;

  template <typename Block>
  bool block() {
    bool finite = true;
    for (std::int64_t i = 0; i < n / Block::kSize; ++i) {
      const Block block = load<Block>(src, i);
      finite &= is_finite(block.d, kF16Exponent);
      if constexpr (requires { block.m; }) finite &= is_finite(block.m, kF16Exponent);
      if constexpr (requires { block.dmin; }) finite &= is_finite(block.dmin, kF16Exponent);
    }
    return finite;
  }
  template <typename Stored, typename Convert>
  bool plain(Stored exponent, Convert) {
    bool finite = true;
    for (std::int64_t i = 0; i < n; ++i) finite &= is_finite(load<Stored>(src, i), exponent);
    return finite;
  }
};

}  // namespace

void dequantize(DType dtype, const std::byte* src, float* dst, std::int64_t n) {
  DUNLIN_DCHECK(n % dtype_info(dtype).block_size == 0, "part of a block");
  visit_format(dtype, Dequantize{src, dst, n});
}

bool all_finite(DType dtype, const std::byte* src, std::int64_t n) {
  DUNLIN_DCHECK(n % dtype_info(dtype).block_size == 0, "part of a block");
  return visit_format(dtype, AllFinite{src, n});
}

}  // namespace dunlin
