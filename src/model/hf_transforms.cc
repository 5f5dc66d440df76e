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

Outcome check_rank(const TensorView& stored, int rank) {
  if (stored.rank == rank) return {};
  return invalid(fmt::format("has {} dimensions, but must have {}", stored.rank, rank));
}

// out [..., n / step] of in [rows, n], in elements of `size` bytes.
void copy_strided(const std::byte* in, std::int64_t rows, std::int64_t n, std::int64_t first,
                  std::int64_t step, std::int64_t size, std::byte* out) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = first; i < n; i += step, out += size)
      std::memcpy(out, in + (row * n + i) * size, static_cast<std::size_t>(size));
  }
}

// The wanted rows of each head, as whole rows or element by element.
Result<LazyTensor> part_of_heads(const LazyTensor& stored, std::int64_t num_heads,
                                 std::int64_t first, std::int64_t count, bool transposed) {
  DUNLIN_TRY(check_float(stored.view));
  const std::int64_t rows = stored.view.rows(), cols = stored.view.cols();
  if (stored.view.rank != 2 || num_heads < 1 || rows % num_heads != 0 || first < 0 || count < 1 ||
      rows / num_heads < count || rows / num_heads - count < first) {
    return invalid(fmt::format("has {} rows, which are not those of {} heads", rows, num_heads));
  }
  TensorView shape = stored.view;
  shape.rank = 3;
  shape.shape = {num_heads, transposed ? cols : count, transposed ? count : cols, 1};
  return stored.derived(shape, [=](std::byte* out) {
    const LazyTensor::Bytes bytes = stored.read();
    const std::int64_t size = row_bytes(shape.dtype, 1);
    for (std::int64_t h = 0; h < num_heads; ++h) {
      const std::byte* part = bytes.data + (h * (rows / num_heads) + first) * cols * size;
      if (!transposed) std::memcpy(out, part, static_cast<std::size_t>(count * cols * size));
      for (std::int64_t i = 0; transposed && i < count * cols; ++i) {
        std::memcpy(out + (i % cols * count + i / cols) * size, part + i * size,
                    static_cast<std::size_t>(size));
      }
      out += count * cols * size;
    }
  });
}

}  // namespace

Result<LazyTensor> rows_of_heads(const LazyTensor& stored, std::int64_t num_heads,
                                 std::int64_t first, std::int64_t count) {
  return part_of_heads(stored, num_heads, first, count, false);
}

Result<LazyTensor> qkv_of_groups(const LazyTensor& stored, std::int64_t num_groups, std::int64_t q,
                                 std::int64_t kv) {
  if (stored.view.rank == 1) {  // a bias: one column
    LazyTensor column = stored;
    column.view.rank = 2;
    column.view.shape = {stored.view.cols(), 1, 1, 1};
    DUNLIN_ASSIGN(made, qkv_of_groups(column, num_groups, q, kv));
    made.view.rank = 1;
    return made;
  }
  const std::int64_t rows = stored.view.rows();
  if (num_groups < 1 || rows % num_groups != 0 || q < 1 || kv < 1 || q > rows || kv > rows ||
      q + 2 * kv != rows / num_groups) {
    return invalid(
        fmt::format("has {} rows, which are not Q, K and V of {} groups of {}, {} and {}", rows,
                    num_groups, q, kv, kv));
  }
  std::vector<LazyTensor> parts;
  for (const auto& [first, count] : {std::pair(std::int64_t{0}, q), {q, kv}, {q + kv, kv}}) {
    DUNLIN_ASSIGN(part, rows_of_heads(stored, num_groups, first, count));
    parts.push_back(std::move(part));
  }
  return stored.derived(stored.view, [parts = std::move(parts)](std::byte* out) {
    for (const LazyTensor& part : parts) {
      part.fill(out);
      out += part.view.size_bytes();
    }
  });
}

Result<LazyTensor> columns_of_heads(const LazyTensor& stored, std::int64_t num_heads,
                                    std::int64_t first, std::int64_t count) {
  return part_of_heads(stored, num_heads, first, count, true);
}

Result<LazyTensor> plus_one(const HfConfig& /*config*/, const LazyTensor& stored) {
  DUNLIN_TRY(check_float(stored.view));
  TensorView shape = stored.view;
  shape.dtype = DType::kF32;
  return stored.derived(shape, [=](std::byte* out) {
    const std::int64_t count = shape.num_elements();
    std::vector<float> values(static_cast<std::size_t>(count));
    dequantize(stored.view.dtype, stored.read().data, values.data(), count);
    for (float& value : values) value += 1.0f;
    std::memcpy(out, values.data(), values.size() * sizeof(float));
  });
}

Result<LazyTensor> strided_columns(const LazyTensor& stored, std::int64_t first,
                                   std::int64_t step) {
  DUNLIN_TRY(check_float(stored.view));
  const std::int64_t rows = stored.view.rows(), cols = stored.view.cols();
  if (cols % step != 0)
    return invalid(fmt::format("has {} columns, no multiple of {}", cols, step));
  TensorView shape = stored.view;
  shape.shape[static_cast<std::size_t>(shape.rank - 1)] = cols / step;
  return stored.derived(shape, [=](std::byte* out) {
    copy_strided(stored.read().data, rows, cols, first, step, row_bytes(shape.dtype, 1), out);
  });
}

Result<LazyTensor> strided_rows(const LazyTensor& stored, std::int64_t first, std::int64_t step) {
  DUNLIN_TRY(check_rank(stored.view, 3));
  const std::int64_t experts = stored.view.shape[0], rows = stored.view.shape[1];
  if (rows % step != 0) return invalid(fmt::format("has {} rows, no multiple of {}", rows, step));
  TensorView shape = stored.view;
  shape.shape[1] = rows / step;
  return stored.derived(shape, [=](std::byte* out) {
    const LazyTensor::Bytes bytes = stored.read();
    copy_strided(bytes.data, experts, rows, first, step, row_bytes(shape.dtype, shape.cols()), out);
  });
}

Result<LazyTensor> transposed_columns(const LazyTensor& stored, std::int64_t first,
                                      std::int64_t step) {
  DUNLIN_TRY(check_rank(stored.view, 3));
  DUNLIN_ASSIGN(columns, strided_columns(stored, first, step));
  TensorView shape = columns.view;
  std::swap(shape.shape[1], shape.shape[2]);
  return stored.derived(shape, [columns = std::move(columns), shape](std::byte* to) {
    const LazyTensor::Bytes bytes = columns.read();
    const auto size = static_cast<std::size_t>(row_bytes(shape.dtype, 1));
    const auto out = static_cast<std::size_t>(shape.shape[1]);
    const auto in = static_cast<std::size_t>(shape.shape[2]);
    for (std::size_t expert = 0; expert < static_cast<std::size_t>(shape.shape[0]); ++expert) {
      const std::byte* from = bytes.data + expert * in * out * size;
      for (std::size_t row = 0; row < out; ++row)
        for (std::size_t col = 0; col < in; ++col, to += size)
          std::memcpy(to, from + (col * out + row) * size, size);
    }
  });
}

Result<LazyTensor> transposed(const LazyTensor& stored) {
  DUNLIN_TRY(check_rank(stored.view, 2));
  LazyTensor one = stored;
  one.view.rank = 3;
  one.view.shape = {1, stored.view.shape[0], stored.view.shape[1], 1};
  DUNLIN_ASSIGN(made, transposed_columns(one, 0, 1));
  made.view.rank = 2;
  made.view.shape = {stored.view.shape[1], stored.view.shape[0], 1, 1};
  return made;
}

}  // namespace dunlin
