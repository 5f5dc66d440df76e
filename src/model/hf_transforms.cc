#include "model/hf_transforms.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "quant/dequantize.h"

namespace dunlin {
namespace {

Outcome check_float(const TensorView& stored) {
  if (stored.dtype == DType::kF32 || stored.dtype == DType::kF16 || stored.dtype == DType::kBF16)
    return {};
  return invalid(
      fmt::format("is of type {}, but must be F32, F16 or BF16", dtype_info(stored.dtype).name));
}

Result<std::vector<float>> to_floats(const TensorView& stored) {
  DUNLIN_TRY(check_float(stored));
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

// The wanted rows of each head, as whole rows or element by element.
Result<MadeTensor> part_of_heads(const TensorView& stored, std::int64_t num_heads,
                                 std::int64_t first, std::int64_t count, bool transposed) {
  DUNLIN_TRY(check_float(stored));
  const std::int64_t rows = stored.rows(), cols = stored.cols();
  if (stored.rank != 2 || num_heads < 1 || rows % num_heads != 0 || first < 0 || count < 1 ||
      rows / num_heads < count || rows / num_heads - count < first) {
    return invalid(fmt::format("has {} rows, which are not those of {} heads", rows, num_heads));
  }
  MadeTensor made;
  made.bytes.resize(static_cast<std::size_t>(row_bytes(stored.dtype, num_heads * count * cols)));
  const std::int64_t size = row_bytes(stored.dtype, 1);
  std::byte* out = made.bytes.data();
  for (std::int64_t h = 0; h < num_heads; ++h) {
    const std::byte* part = stored.data + (h * (rows / num_heads) + first) * cols * size;
    if (!transposed) std::memcpy(out, part, static_cast<std::size_t>(count * cols * size));
    for (std::int64_t i = 0; transposed && i < count * cols; ++i) {
      std::memcpy(out + (i % cols * count + i / cols) * size, part + i * size,
                  static_cast<std::size_t>(size));
    }
    out += count * cols * size;
  }
  made.view.dtype = stored.dtype;
  made.view.rank = 3;
  made.view.shape = {num_heads, transposed ? cols : count, transposed ? count : cols, 1};
  made.view.data = made.bytes.data();
  return made;
}

}  // namespace

Result<MadeTensor> rows_of_heads(const TensorView& stored, std::int64_t num_heads,
                                 std::int64_t first, std::int64_t count) {
  return part_of_heads(stored, num_heads, first, count, false);
}

Result<MadeTensor> qkv_of_groups(const TensorView& stored, std::int64_t num_groups, std::int64_t q,
                                 std::int64_t kv) {
  if (stored.rank == 1) {  // a bias: one column
    TensorView column = stored;
    column.rank = 2;
    column.shape = {stored.cols(), 1, 1, 1};
    DUNLIN_ASSIGN(made, qkv_of_groups(column, num_groups, q, kv));
    made.view.rank = 1;
    return made;
  }
  const std::int64_t rows = stored.rows();
  if (num_groups < 1 || rows % num_groups != 0 || q < 1 || kv < 1 || q > rows || kv > rows ||
      q + 2 * kv != rows / num_groups) {
    return invalid(
        fmt::format("has {} rows, which are not Q, K and V of {} groups of {}, {} and {}", rows,
                    num_groups, q, kv, kv));
  }
  MadeTensor made;
  for (const auto& [first, count] : {std::pair(std::int64_t{0}, q), {q, kv}, {q + kv, kv}}) {
    DUNLIN_ASSIGN(part, rows_of_heads(stored, num_groups, first, count));
    made.bytes.insert(made.bytes.end(), part.bytes.begin(), part.bytes.end());
  }
  made.view = stored;
  made.view.shape[0] = num_groups * (q + 2 * kv);
  made.view.data = made.bytes.data();
  return made;
}

Result<MadeTensor> columns_of_heads(const TensorView& stored, std::int64_t num_heads,
                                    std::int64_t first, std::int64_t count) {
  return part_of_heads(stored, num_heads, first, count, true);
}

Result<MadeTensor> plus_one(const HfConfig& /*config*/, const TensorView& stored) {
  DUNLIN_ASSIGN(values, to_floats(stored));
  for (float& value : values) value += 1.0f;
  return made_of(values, stored);
}

Result<MadeTensor> strided_columns(const TensorView& stored, std::int64_t first,
                                   std::int64_t step) {
  DUNLIN_TRY(check_float(stored));
  const std::int64_t rows = stored.rows(), cols = stored.cols(), kept = cols / step;
  if (cols % step != 0)
    return invalid(fmt::format("has {} columns, no multiple of {}", cols, step));
  const auto size = static_cast<std::size_t>(row_bytes(stored.dtype, 1));
  MadeTensor made{stored, std::vector<std::byte>(static_cast<std::size_t>(rows * kept) * size)};
  made.view.shape[static_cast<std::size_t>(stored.rank - 1)] = kept;
  made.view.data = made.bytes.data();
  std::byte* out = made.bytes.data();
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t col = first; col < cols; col += step, out += size) {
      std::memcpy(out, stored.data + static_cast<std::size_t>(row * cols + col) * size, size);
    }
  }
  return made;
}

Result<MadeTensor> transposed_columns(const TensorView& stored, std::int64_t first,
                                      std::int64_t step) {
  if (stored.rank != 3)
    return invalid(fmt::format("has {} dimensions, but must have 3", stored.rank));
  DUNLIN_ASSIGN(made, strided_columns(stored, first, step));
  const std::vector<std::byte> rows = std::move(made.bytes);
  const auto size = static_cast<std::size_t>(row_bytes(stored.dtype, 1));
  const auto in = static_cast<std::size_t>(made.view.shape[1]);
  const auto out = static_cast<std::size_t>(made.view.shape[2]);
  std::swap(made.view.shape[1], made.view.shape[2]);
  made.bytes.resize(rows.size());
  made.view.data = made.bytes.data();
  std::byte* to = made.bytes.data();
  for (std::size_t expert = 0; expert < static_cast<std::size_t>(stored.shape[0]); ++expert) {
    const std::byte* from = rows.data() + expert * in * out * size;
    for (std::size_t row = 0; row < out; ++row)
      for (std::size_t col = 0; col < in; ++col, to += size)
        std::memcpy(to, from + (col * out + row) * size, size);
  }
  return made;
}

Result<MadeTensor> transposed(const TensorView& stored) {
  if (stored.rank != 2)
    return invalid(fmt::format("has {} dimensions, but must have 2", stored.rank));
  TensorView one = stored;
  one.rank = 3;
  one.shape = {1, stored.shape[0], stored.shape[1], 1};
  DUNLIN_ASSIGN(made, transposed_columns(one, 0, 1));
  made.view.rank = 2;
  made.view.shape = {stored.shape[1], stored.shape[0], 1, 1};
  return made;
}

}  // namespace dunlin
