#include "model/hf_transforms.h"

#include <cstring>

#include <fmt/format.h>

#include "quant/dequantize.h"

namespace dunlin {
namespace {

Result<std::vector<float>> to_floats(const TensorView& stored) {
  if (stored.dtype != DType::kF32 && stored.dtype != DType::kF16 && stored.dtype != DType::kBF16) {
    return invalid(
        fmt::format("is of type {}, but must be F32, F16 or BF16", dtype_info(stored.dtype).name));
  }
  std::vector<float> values(static_cast<std::size_t>(stored.num_elements()));
  dequantize(stored.dtype, stored.data, values.data(), stored.num_elements());
  return values;
}

MadeTensor made_of(const std::vector<float>& values, const TensorView& shape) {
  MadeTensor made;
  made.bytes.resize(values.size() * sizeof(float));
  std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  made.view = shape;
  made.view.dtype = DType::kF32;
  made.view.data = made.bytes.data();
  return made;
}

}  // namespace

Result<MadeTensor> plus_one(const TensorView& stored) {
  DUNLIN_ASSIGN(values, to_floats(stored));
  for (float& value : values) value += 1.0f;
  return made_of(values, stored);
}

}  // namespace dunlin
