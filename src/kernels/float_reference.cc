// The float operations in plain loops and double: what the other tables are held against.
#include <cmath>

#include "kernels/float_kernels.h"
#include "kernels/kv_codec.h"
#include "quant/dequantize.h"

namespace dunlin {
namespace {

void rms_norm_row(const float* x, const float* weight, float eps, std::int64_t n, float* y) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  const double inverse = 1.0 / std::sqrt(sum / static_cast<double>(n) + eps);
  for (std::int64_t i = 0; i < n; ++i) {
    const double scale = weight != nullptr ? inverse * weight[i] : inverse;
    y[i] = static_cast<float>(x[i] * scale);
  }
}

double factor(const float* up, std::int64_t i) { return up != nullptr ? up[i] : 1.0; }

void silu_mul_row(const float* gate, const float* up, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = gate[i];
    y[i] = static_cast<float>(x / (1.0 + std::exp(-x)) * factor(up, i));
  }
}

void gelu_tanh_mul_row(const float* gate, const float* up, std::int64_t n, float* y) {
  constexpr double kSqrt2OverPi = 0.79788456080286536;
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = gate[i];
    const double u = kSqrt2OverPi * (x + 0.044715 * x * x * x);
    y[i] = static_cast<float>(0.5 * x * (1.0 + std::tanh(u)) * factor(up, i));
  }
}

void gelu_erf_mul_row(const float* gate, const float* up, std::int64_t n, float* y) {
  constexpr double kSqrtHalf = 0.70710678118654752;
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = gate[i];
    y[i] = static_cast<float>(0.5 * x * std::erfc(-kSqrtHalf * x) * factor(up, i));
  }
}

void clamped_swiglu_row(const float* gate, const float* up, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = gate[i] > 7.0f ? 7.0 : gate[i];
    const double u = up[i] > 7.0f ? 7.0 : up[i] < -7.0f ? -7.0 : up[i];
    y[i] = static_cast<float>(x / (1.0 + std::exp(-1.702 * x)) * (u + 1.0));
  }
}

void softcap_row(float cap, std::int64_t n, float* x) {
  for (std::int64_t i = 0; i < n; ++i)
    x[i] = static_cast<float>(cap * std::tanh(static_cast<double>(x[i]) / cap));
}

void exp_below_row(const float* x, float shift, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = static_cast<float>(std::exp(static_cast<double>(x[i]) - shift));
}

float bound(float x, float limit) {
  const float below = x < limit ? x : limit;
  return below > -limit ? below : -limit;
}

void store_element(KvFormat format, std::byte* array, std::int64_t i, float x) {
  if (format == KvFormat::kF32)
    reinterpret_cast<float*>(array)[i] = x;
  else if (format == KvFormat::kF16)
    reinterpret_cast<std::uint16_t*>(array)[i] = f32_to_f16(bound(x, 65504.0f));
  else
    reinterpret_cast<std::uint16_t*>(array)[i] = f32_to_bf16(bound(x, 3.3895313892515355e38f));
}

void write_keys(const KvPart& part, std::byte* first, int token, const float* k) {
  if (kv_format_info(part.format).bits <= 8) return write_kv_keys(part, first, token, k);
  for (std::int64_t i = 0; i < std::int64_t{part.num_heads} * part.head_dim; ++i)
    store_element(part.format, first, i * kKvBlockSize + token, k[i]);
}

void write_values(const KvPart& part, std::byte* first, int token, const float* v) {
  if (kv_format_info(part.format).bits <= 8) return write_kv_values(part, first, token, v);
  const std::int64_t dim = part.head_dim;
  for (int h = 0; h < part.num_heads; ++h)
    for (std::int64_t d = 0; d < dim; ++d)
      store_element(part.format, first, (h * kKvBlockSize + token) * dim + d, v[h * dim + d]);
}

void kv_write_row(const PagedKvLayer& layer, std::int64_t slot, const float* k, const float* v) {
  std::byte* block = layer.base + slot / kKvBlockSize * layer.block_stride;
  const int token = static_cast<int>(slot % kKvBlockSize);
  write_keys(layer.k, block + layer.k_offset, token, k);
  if (!layer.values_in_keys) write_values(layer.v, block + layer.v_offset, token, v);
}

float page_score_rows(const std::uint16_t* bounds, const float* q, int num_rows, std::int64_t n) {
  double best = -std::numeric_limits<double>::infinity();
  for (int r = 0; r < num_rows; ++r, q += n) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += double{q[i]} * f16_to_f32(bounds[i]);
    best = std::max(best, sum);
  }
  return static_cast<float>(best);
}

}  // namespace

const FloatKernels& reference_float_kernels() {
  static constexpr FloatKernels kTable = {
      .rms_norm = rms_norm_row,
      .silu_mul = silu_mul_row,
      .gelu_tanh_mul = gelu_tanh_mul_row,
      .gelu_erf_mul = gelu_erf_mul_row,
      .clamped_swiglu = clamped_swiglu_row,
      .softcap = softcap_row,
      .exp_below = exp_below_row,
      .kv_write = kv_write_row,
      .page_score = page_score_rows,
      .prepare_queries = nullptr,
      .attend_split = nullptr,
      .vote_split = nullptr,
      .merge_partial = nullptr,
      .finish_row = nullptr,
  };
  return kTable;
}

}  // namespace dunlin
