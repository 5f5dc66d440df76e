#include "model/hf_quantized.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/quote.h"
#include "quant/dequantize.h"
#include "quant/q5_0.h"

namespace dunlin {
namespace {

constexpr std::int64_t kMxBlock = 32;

tl::unexpected<Status> wrong(const SafetensorsTensor& tensor, std::string_view what) {
  return invalid(fmt::format("tensor {} {}", quote_for_message(tensor.name), what));
}

bool is_bytes(const SafetensorsTensor& tensor, std::string_view type) {
  return tensor.stored_type == type && tensor.view.data != nullptr;
}

Result<const SafetensorsTensor*> scales_of(const SafetensorsTensor& tensor, std::string name,
                                           const Safetensors& stored) {
  if (const SafetensorsTensor* scales = stored.find(name)) return scales;
  return wrong(tensor, fmt::format("is stored as {}, but {} is missing", tensor.stored_type,
                                   quote_for_message(name)));
}

// --- fp8

struct Blocks {
  std::int64_t rows = 0, cols = 0;
};

Result<Blocks> read_blocks(const HfConfig& quantization) {
  const std::vector<std::int64_t> size = quantization.integers("weight_block_size");
  const std::string format = quantization.word("fmt", "e4m3");
  DUNLIN_TRY(quantization.outcome());
  constexpr std::int64_t kMax = 1 << 20;
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > kMax || size[1] > kMax ||
      format != "e4m3") {
    return fail(StatusCode::kUnimplemented,
                fmt::format("{}: of quant_method fp8 only fmt e4m3 with a weight_block_size of two "
                            "numbers is supported",
                            quantization.path()));
  }
  return Blocks{size[0], size[1]};
}

void widen(const TensorView& weights, const TensorView& scales, Blocks blocks, std::byte* out) {
  std::vector<float> factors(static_cast<std::size_t>(scales.num_elements()));
  dequantize(scales.dtype, scales.data, factors.data(), scales.num_elements());
  float values[256];
  for (int bits = 0; bits < 256; ++bits)
    values[bits] = f8_e4m3_to_f32(static_cast<std::uint8_t>(bits));
  const std::int64_t cols = weights.cols();
  for (std::int64_t row = 0; row < weights.rows(); ++row) {
    const float* factor = factors.data() + row / blocks.rows * scales.cols();
    for (std::int64_t col = 0; col < cols; ++col, out += 2) {
      const auto bits = std::to_integer<std::uint8_t>(weights.data[row * cols + col]);
      const std::uint16_t half = f32_to_bf16(values[bits] * factor[col / blocks.cols]);
      std::memcpy(out, &half, 2);
    }
  }
}

Result<LazyTensor> from_fp8(const SafetensorsTensor& tensor, Blocks blocks,
                            const Safetensors& stored) {
  DUNLIN_ASSIGN(scales, scales_of(tensor, tensor.name + "_scale_inv", stored));
  const TensorView weights = tensor.view, factors = scales->view;
  const auto num_blocks = [](std::int64_t size, std::int64_t block) {
    return (size + block - 1) / block;
  };
  if (weights.rank != 2) return wrong(tensor, "must have two dimensions");
  if (!scales->readable || dtype_info(factors.dtype).block_size != 1 ||
      dtype_info(factors.dtype).block_bytes > 4 || factors.rank != 2 ||
      factors.rows() != num_blocks(weights.rows(), blocks.rows) ||
      factors.cols() != num_blocks(weights.cols(), blocks.cols)) {
    return wrong(*scales, fmt::format("must be [{}, {}] floats, a scale for each block of {}",
                                      num_blocks(weights.rows(), blocks.rows),
                                      num_blocks(weights.cols(), blocks.cols),
                                      quote_for_message(tensor.name)));
  }
  TensorView shape = weights;
  shape.dtype = DType::kBF16;
  LazyTensor both{weights, {}, {weights, factors}};
  return both.derived(shape, [=](std::byte* out) { widen(weights, factors, blocks, out); });
}

// --- mxfp4

// Twice the magnitude of each code; the fourth bit is the sign.
constexpr int kTwiceValues[8] = {0, 1, 2, 3, 4, 6, 8, 12};

// 16 bytes of two codes each, the first in the low half, over 2^(exponent - 127).
BlockQ5_0 to_q5_0(const std::byte* codes, int exponent) {
  // The smallest unit that F16 has is 2^-24; below it (weights below 4e-7) numbers are rounded.
  constexpr int kSmallest = 127 + 1 - 24;
  const float shrink = exponent < kSmallest ? std::ldexp(1.0f, exponent - kSmallest) : 1.0f;
  BlockQ5_0 block{};
  bool is_zero = true;
  for (int j = 0; j < kMxBlock; ++j) {
    const int code = std::to_integer<int>(codes[j / 2]) >> (j % 2 * 4) & 0xF;
    const auto twice =
        static_cast<int>(std::nearbyint(static_cast<float>(kTwiceValues[code & 7]) * shrink));
    const int q = 16 + ((code & 8) != 0 ? -twice : twice);
    is_zero = is_zero && twice == 0;
    std::uint8_t& low = block.qs[j % 16];
    low = static_cast<std::uint8_t>(low | (q & 0xF) << (j / 16 * 4));
    block.qh[j / 8] = static_cast<std::uint8_t>(block.qh[j / 8] | (q >> 4) << (j % 8));
  }
  // 255 is no number; what F16 can't hold becomes an infinity, which is refused when it is read.
  const int power = std::max(exponent, kSmallest) - 128;
  block.d = is_zero && exponent != 255 ? std::uint16_t{0}
            : exponent == 255          ? std::uint16_t{0x7E00}
                                       : f32_to_f16(std::ldexp(1.0f, power));
  return block;
}

Result<LazyTensor> from_mxfp4(const SafetensorsTensor& tensor, const Safetensors& stored) {
  constexpr std::string_view kEnd = "_blocks";
  DUNLIN_ASSIGN(
      scales, scales_of(tensor, tensor.name.substr(0, tensor.name.size() - kEnd.size()) + "_scales",
                        stored));
  const TensorView codes = tensor.view, exponents = scales->view;
  if (codes.rank < 3 || codes.cols() != kMxBlock / 2)
    return wrong(tensor, "must be [..., blocks of 32, 16] bytes");
  const int rank = codes.rank - 1;
  bool fits = is_bytes(*scales, "U8") && exponents.rank == rank;
  for (std::size_t i = 0; fits && i < static_cast<std::size_t>(rank); ++i)
    fits = exponents.shape[i] == codes.shape[i];
  if (!fits) {
    return wrong(*scales, fmt::format("must be a byte for each block of {}",
                                      quote_for_message(tensor.name)));
  }
  TensorView shape = codes;
  shape.dtype = DType::kQ5_0;
  shape.rank = rank;
  shape.shape[static_cast<std::size_t>(rank)] = 1;
  shape.shape[static_cast<std::size_t>(rank - 1)] *= kMxBlock;
  LazyTensor both{codes, {}, {codes, exponents}};
  return both.derived(shape, [=](std::byte* out) {
    for (std::int64_t i = 0; i < codes.rows(); ++i, out += sizeof(BlockQ5_0)) {
      const BlockQ5_0 block =
          to_q5_0(codes.data + i * codes.cols(), std::to_integer<int>(exponents.data[i]));
      std::memcpy(out, &block, sizeof block);
    }
  });
}

enum class Method { kNone, kFp8, kMxfp4 };

Result<Method> read_method(const HfConfig& config) {
  if (!config.has("quantization_config")) return Method::kNone;
  const HfConfig quantization = config.object("quantization_config");
  const std::string method = quantization.word("quant_method", "");
  DUNLIN_TRY(config.outcome());
  if (method == "fp8") return Method::kFp8;
  if (method == "mxfp4") return Method::kMxfp4;
  return fail(StatusCode::kUnimplemented,
              fmt::format("{}: weights quantised by {} (quantization_config) are not supported; "
                          "supported are fp8 in blocks and mxfp4; use the model's plain weights or "
                          "a GGUF file",
                          config.path(), quote_for_message(method)));
}

}  // namespace

float f8_e4m3_to_f32(std::uint8_t bits) {
  const int exponent = bits >> 3 & 0xF, mantissa = bits & 7;
  if (exponent == 0xF && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(mantissa), -9)
                              : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

Result<std::vector<HfTensor>> readable_tensors(const HfConfig& config, const Safetensors& stored) {
  DUNLIN_ASSIGN(method, read_method(config));
  Blocks blocks;
  if (method == Method::kFp8) {
    DUNLIN_ASSIGN(read, read_blocks(config.object("quantization_config")));
    blocks = read;
  }
  std::vector<HfTensor> tensors;
  for (const SafetensorsTensor& tensor : stored.tensors()) {
    const std::string_view name = tensor.name;
    HfTensor& out = tensors.emplace_back();
    out = {tensor.name, tensor.stored_type, tensor.readable, stored_tensor(tensor.view)};
    const bool is_fp8 = method == Method::kFp8 && is_bytes(tensor, "F8_E4M3");
    const bool is_mxfp4 =
        method == Method::kMxfp4 && name.ends_with("_blocks") && is_bytes(tensor, "U8");
    if (is_fp8 || is_mxfp4) {
      DUNLIN_ASSIGN(made, is_fp8 ? from_fp8(tensor, blocks, stored) : from_mxfp4(tensor, stored));
      out.tensor = std::move(made);
      out.readable = true;
      continue;
    }
    // Read with the tensor that they belong to.
    const auto belongs_to = [&](std::string_view end, std::string_view other,
                                std::string_view type) {
      if (!name.ends_with(end)) return false;
      const auto* owner =
          stored.find(std::string(name.substr(0, name.size() - end.size())).append(other));
      return owner != nullptr && is_bytes(*owner, type);
    };
    if ((method == Method::kFp8 && belongs_to("_scale_inv", "", "F8_E4M3")) ||
        (method == Method::kMxfp4 && belongs_to("_scales", "_blocks", "U8")))
      tensors.pop_back();
  }
  return tensors;
}

}  // namespace dunlin
