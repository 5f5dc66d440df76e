#include "support/tiny_weights.h"

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/rng.h"
#include "quant/dequantize.h"
#include "quant/quantize.h"

namespace dunlin {
namespace {

std::uint32_t hash_name(std::string_view name) {  // FNV-1a
  std::uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

std::array<std::uint32_t, 4> random_words(std::uint64_t seed, std::uint32_t stream,
                                          std::uint64_t position) {
  return philox4x32({static_cast<std::uint32_t>(position),
                     static_cast<std::uint32_t>(position >> 32), stream, 0x71E57u},
                    {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

// Close to normal, mean 0 and deviation 1: the sum of four uniforms. Only exact operations, so the
// same on every machine.
float random_normal(std::uint64_t seed, std::uint32_t stream, std::uint64_t position) {
  std::int64_t sum = 0;
  for (const std::uint32_t word : random_words(seed, stream, position)) sum += word >> 8;
  const auto centred = static_cast<float>(sum - 2 * ((1 << 24) - 1));
  return centred * (1.7320508f / static_cast<float>(1 << 24));
}

// Where a block of a format without a quantiser has its scales.
struct ScaleFields {
  DType dtype;
  int d;
  int dmin;             // -1: none
  float min_per_scale;  // dmin / d that makes the mean zero
};
constexpr ScaleFields kScaleFields[] = {
    {DType::kQ2_K, 80, 82, 1.5f}, {DType::kQ3_K, 108, -1, 0}, {DType::kQ4_K, 0, 2, 7.5f},
    {DType::kQ5_K, 0, 2, 15.5f},  {DType::kQ6_K, 208, -1, 0}, {DType::kIQ4_NL, 0, -1, 0},
    {DType::kIQ4_XS, 0, -1, 0},
};

void set_scales(const ScaleFields& fields, std::byte* block, float d) {
  const std::uint16_t half = f32_to_f16(d), min = f32_to_f16(d * fields.min_per_scale);
  std::memcpy(block + fields.d, &half, 2);
  if (fields.dmin >= 0) std::memcpy(block + fields.dmin, &min, 2);
}

// Random codes; the scale of each block is what gives its elements the wanted deviation.
void random_blocks(const ScaleFields& fields, std::uint64_t seed, std::uint32_t stream,
                   std::int64_t row, float stddev, std::byte* out, std::int64_t cols) {
  const DTypeInfo& info = dtype_info(fields.dtype);
  std::vector<float> floats(static_cast<std::size_t>(info.block_size));
  const std::int64_t num_blocks = cols / info.block_size;
  for (std::int64_t b = 0; b < num_blocks; ++b) {
    std::byte* block = out + b * info.block_bytes;
    for (int i = 0; i < info.block_bytes; ++i) {
      const auto position = static_cast<std::uint64_t>((row * num_blocks + b) * 64 + i / 16);
      const auto words = random_words(seed, stream, position);
      std::memcpy(block + i, reinterpret_cast<const char*>(words.data()) + i % 16, 1);
    }
    set_scales(fields, block, 1.0f);
    dequantize(fields.dtype, block, floats.data(), info.block_size);
    double squares = 0;
    for (const float x : floats) squares += double{x} * x;
    const double deviation = std::sqrt(squares / info.block_size);
    // A random sign: IQ4's values have a mean below zero, which all rows would share.
    const auto sign =
        random_words(seed, stream,
                     static_cast<std::uint64_t>((row * num_blocks + b) * 64 + 63))[0] %
                    2 ==
                0
            ? 1.0
            : -1.0;
    set_scales(fields, block, static_cast<float>(sign * stddev / deviation));
  }
}

}  // namespace

std::vector<std::byte> random_tensor(const TinyTensor& tensor, std::uint64_t seed) {
  const std::uint32_t stream = hash_name(tensor.name);
  const std::int64_t bytes_per_row = row_bytes(tensor.dtype, tensor.cols);
  std::vector<std::byte> out(static_cast<std::size_t>(tensor.rows * bytes_per_row));
  std::vector<float> row(static_cast<std::size_t>(tensor.cols));
  for (std::int64_t r = 0; r < tensor.rows; ++r) {
    std::byte* row_out = out.data() + r * bytes_per_row;
    const float stddev = tensor.stddev * (tensor.row_factor ? tensor.row_factor(r) : 1.0f);
    if (can_quantize(tensor.dtype)) {
      for (std::int64_t c = 0; c < tensor.cols; ++c) {
        const auto position = static_cast<std::uint64_t>(r * tensor.cols + c);
        row[static_cast<std::size_t>(c)] =
            tensor.mean + stddev * random_normal(seed, stream, position);
      }
      quantize(tensor.dtype, row.data(), row_out, tensor.cols);
      continue;
    }
    bool found = false;
    for (const ScaleFields& fields : kScaleFields) {
      if (fields.dtype != tensor.dtype) continue;
      random_blocks(fields, seed, stream, r, stddev, row_out, tensor.cols);
      found = true;
    }
    DUNLIN_CHECK(found, "no random weights of this type");
  }
  return out;
}

}  // namespace dunlin
