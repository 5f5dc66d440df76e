// Random tensors of any weight type, a function of the seed and the tensor's name only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace dunlin {

struct TinyTensor {
  std::string_view name;
  DType dtype = DType::kF32;
  std::int64_t rows = 1;
  std::int64_t cols = 0;
  float mean = 0.0f;
  float stddev = 1.0f;
  // Factor on row r; unset: 1.
  std::function<float(std::int64_t)> row_factor{};
};

std::vector<std::byte> random_tensor(const TinyTensor& tensor, std::uint64_t seed);

}  // namespace dunlin
