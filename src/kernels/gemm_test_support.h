// Random stored matrices for the tests and benchmarks of kernels/.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "quant/dequantize.h"
#include "quant/panel_formats.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace dunlin::testing {

// Where the half-precision scales of a stored block are; -1: none.
struct ScaleOffsets {
  int first = -1, second = -1;
};
inline ScaleOffsets scale_offsets(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
    case DType::kQ5_0:
    case DType::kQ8_0:
    case DType::kIQ4_NL:
    case DType::kIQ4_XS: return {0, -1};
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K: return {0, 2};
    case DType::kQ2_K: return {80, 82};
    case DType::kQ3_K: return {108, -1};
    case DType::kQ6_K: return {208, -1};
    default: return {};
  }
}

inline constexpr DType kBlockTypes[] = {
#define DUNLIN_TYPE(name) DType::k##name,
    DUNLIN_PANEL_FORMATS(DUNLIN_TYPE)
#undef DUNLIN_TYPE
};
inline constexpr DType kPlainTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

struct StoredMatrix {
  DType dtype;
  std::int64_t rows, cols;
  std::vector<std::byte> bytes;

  TensorView view() const {
    return {.dtype = dtype, .rank = 2, .shape = {rows, cols, 1, 1}, .data = bytes.data()};
  }
  std::vector<float> row(std::int64_t r) const {
    std::vector<float> out(static_cast<std::size_t>(cols));
    dequantize(dtype, bytes.data() + r * row_bytes(dtype, cols), out.data(), cols);
    return out;
  }
};

// Every bit pattern of codes and factors; scales of either sign and ordinary size.
inline StoredMatrix random_matrix(DType dtype, std::int64_t rows, std::int64_t cols,
                                  std::uint32_t seed) {
  std::mt19937 rng(seed);
  StoredMatrix m{dtype, rows, cols, {}};
  m.bytes.resize(static_cast<std::size_t>(rows * row_bytes(dtype, cols)));
  const auto uniform = [&] { return static_cast<float>(rng() % 2001) / 1000.0f - 1.0f; };
  const DTypeInfo& info = dtype_info(dtype);
  if (info.block_size == 1) {
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      const float value = uniform();
      const std::uint16_t half = dtype == DType::kF16 ? f32_to_f16(value) : f32_to_bf16(value);
      if (dtype == DType::kF32)
        std::memcpy(&m.bytes[static_cast<std::size_t>(4 * i)], &value, 4);
      else
        std::memcpy(&m.bytes[static_cast<std::size_t>(2 * i)], &half, 2);
    }
    return m;
  }
  for (std::byte& byte : m.bytes) byte = static_cast<std::byte>(rng());
  const ScaleOffsets at = scale_offsets(dtype);
  for (std::size_t block = 0; block < m.bytes.size();
       block += static_cast<std::size_t>(info.block_bytes)) {
    for (const int offset : {at.first, at.second}) {
      if (offset < 0) continue;
      const std::uint16_t half = f32_to_f16(uniform() * 0.05f);
      std::memcpy(&m.bytes[block + static_cast<std::size_t>(offset)], &half, 2);
    }
  }
  return m;
}

inline std::vector<float> random_floats(std::int64_t n, std::uint32_t seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& value : out) value = normal(rng);
  return out;
}

}  // namespace dunlin::testing
