// The kernels in plain loops: they fix the order and rounding of every sum that the vector kernels
// must reproduce bit for bit (quant/panel_scales.h has the formulas), and run where there is no
// vector kernel.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/gemm_panels.h"
#include "quant/packed_matrix.h"
#include "quant/panel_formats.h"

namespace dunlin {
namespace {

// Tokens a pass over a panel: their accumulators stay in the first-level cache.
constexpr std::int64_t kMaxTokens = 64;

std::int64_t x_row(const PanelJob& job, std::int64_t token) {
  return job.token_rows != nullptr ? job.token_rows[token] : token;
}

void store_rows(const PanelJob& job, std::int64_t panel, std::int64_t first_token,
                std::int64_t num_tokens, const float (*acc)[kPanelRows]) {
  const std::int64_t row = panel * kPanelRows;
  const std::int64_t count = std::min<std::int64_t>(kPanelRows, job.num_rows - row);
  for (std::int64_t t = 0; t < num_tokens; ++t) {
    float* y = job.y + (first_token + t) * job.y_stride + row;
    for (std::int64_t r = 0; r < count; ++r) {
      y[r] = job.bias != nullptr ? acc[t][r] + job.bias[row + r] : acc[t][r];
    }
  }
}

// dots[h][r]: the sum over half h of a block.
void half_dots(const std::int16_t (*w)[kPanelRows], const std::int8_t* x,
               std::int32_t (*dots)[kPanelRows]) {
  for (int h = 0; h < 2; ++h) {
    std::int32_t sums[kPanelRows] = {};
    for (int k = 16 * h; k < 16 * h + 16; ++k) {
      const std::int16_t value = x[k];
      for (int r = 0; r < kPanelRows; ++r) {
        // The product of a signed byte and at most eight bits fits: 127 * 128 < 2^15.
        sums[r] += static_cast<std::int16_t>(w[k][r] * value);
      }
    }
    std::memcpy(dots[h], sums, sizeof(sums));
  }
}

template <ScaleKind kind>
void add_block(const BlockScales& scales, const std::int32_t (*dots)[kPanelRows],
               const ActivationBlock& x, float* acc) {
  for (int r = 0; r < kPanelRows; ++r) {
    std::int32_t dot = dots[0][r] + dots[1][r];
    if constexpr (kind == ScaleKind::kHalves || kind == ScaleKind::kHalvesMin) {
      dot = scales.s[0][r] * dots[0][r] + scales.s[1][r] * dots[1][r];
    }
    float sum = std::fma(scales.d[r] * x.scale, static_cast<float>(dot), acc[r]);
    if constexpr (kind == ScaleKind::kMin) sum = std::fma(scales.m[r], x.scaled_sum, sum);
    if constexpr (kind == ScaleKind::kHalvesMin) {
      const std::int32_t min = scales.t[0][r] * x.half_sums[0] + scales.t[1][r] * x.half_sums[1];
      sum = std::fma(scales.m[r] * x.scale, static_cast<float>(min), sum);
    }
    acc[r] = sum;
  }
}

template <typename Format>
void block_panels(const PanelJob& job) {
  using Scales = typename Format::Scales;
  using Bits = typename Format::Bits;
  const std::int64_t num_blocks = job.cols / kBlockCols;
  for (std::int64_t panel = 0; panel < job.num_panels; ++panel) {
    const std::byte* records = job.panels + panel * job.panel_bytes;
    const std::byte* bits = records + PanelShape<Format>::scales_bytes(num_blocks);
    for (std::int64_t first = 0; first < job.num_tokens; first += kMaxTokens) {
      const std::int64_t tokens = std::min(kMaxTokens, job.num_tokens - first);
      alignas(64) float acc[kMaxTokens][kPanelRows] = {};
      for (std::int64_t block = 0; block < num_blocks; ++block) {
        CodeTile tile;
        Bits::load(bits + block * Bits::kBlockBytes, tile);
        alignas(64) std::int16_t w[kBlockCols][kPanelRows];
        for (int k = 0; k < kBlockCols; ++k) {
          for (int r = 0; r < kPanelRows; ++r) {
            const std::uint8_t code = tile.codes[k / 4][4 * r + k % 4];
            w[k][r] = static_cast<std::int16_t>(Format::kSigned ? static_cast<std::int8_t>(code)
                                                                : code - Format::kZeroPoint);
          }
        }
        BlockScales scales;
        Scales::get(records + block / Scales::kSpanBlocks * Scales::kRecordBytes,
                    static_cast<int>(block % Scales::kSpanBlocks), scales);
        for (std::int64_t t = 0; t < tokens; ++t) {
          const std::int64_t row = x_row(job, first + t);
          std::int32_t dots[2][kPanelRows];
          const ActivationBlock& x = job.x.blocks[row * job.x.stride + block];
          half_dots(w, x.q, dots);
          add_block<Scales::kKind>(scales, dots, x, acc[t]);
        }
      }
      store_rows(job, panel, first, tokens, acc);
    }
  }
}

// Plain types: one chain of fused multiply-adds a row and token, ascending K.
template <typename T, float (*to_float)(T)>
void plain_panels(const PanelJob& job) {
  for (std::int64_t panel = 0; panel < job.num_panels; ++panel) {
    const std::byte* data = job.panels + panel * job.panel_bytes;
    for (std::int64_t first = 0; first < job.num_tokens; first += kMaxTokens) {
      const std::int64_t tokens = std::min(kMaxTokens, job.num_tokens - first);
      alignas(64) float acc[kMaxTokens][kPanelRows] = {};
      for (std::int64_t k = 0; k < job.cols; ++k) {
        T stored[kPanelRows];
        std::memcpy(stored, data + k * static_cast<std::int64_t>(sizeof(stored)), sizeof(stored));
        for (std::int64_t t = 0; t < tokens; ++t) {
          const float x = job.x.values[x_row(job, first + t) * job.x.stride * 32 + k];
          for (int r = 0; r < kPanelRows; ++r) {
            acc[t][r] = std::fma(to_float(stored[r]), x, acc[t][r]);
          }
        }
      }
      store_rows(job, panel, first, tokens, acc);
    }
  }
}

float same(float value) { return value; }

// The largest magnitude, as bits: NaN compares above infinity.
std::uint32_t max_magnitude(const float* x, std::int64_t n) {
  std::uint32_t result = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, x + i, sizeof(bits));
    result = std::max(result, bits & 0x7fffffffu);
  }
  return result;
}

void quantize_block(const float* x, std::int64_t n, std::int8_t* q, float* scale) {
  std::memset(q, 0, kBlockCols);
  const std::uint32_t bits = max_magnitude(x, n);
  float max;
  std::memcpy(&max, &bits, sizeof(max));
  if (bits >= 0x7f800000u) {
    *scale = NAN;  // a broken input must show in every output
  } else if (max < 1e-30f) {
    *scale = 0;  // below it 127 / max would overflow
  } else {
    *scale = max / 127.0f;
    const float inverse = 127.0f / max;
    for (std::int64_t i = 0; i < n; ++i) {
      q[i] = static_cast<std::int8_t>(std::nearbyintf(x[i] * inverse));
    }
  }
}

void quantize_row(const ActivationRows& rows, std::int64_t token, const float* x,
                  std::int64_t num_cols) {
  for (std::int64_t block = 0; block < rows.num_blocks; ++block) {
    const std::int64_t at = token * rows.stride + block;
    ActivationBlock& out = rows.blocks[at];
    quantize_block(x + block * kBlockCols, std::min<std::int64_t>(32, num_cols - block * 32), out.q,
                   &out.scale);
    for (int h = 0; h < 2; ++h) {
      int even = 0, odd = 0;
      for (int k = 16 * h; k < 16 * h + 16; k += 4) {
        even += out.q[k] + out.q[k + 1];
        odd += out.q[k + 2] + out.q[k + 3];
      }
      out.half_lanes[h][0] = static_cast<std::int16_t>(even);
      out.half_lanes[h][1] = static_cast<std::int16_t>(odd);
      out.half_sums[h] = static_cast<std::int16_t>(even + odd);
    }
    for (int lane = 0; lane < 2; ++lane) {
      out.lanes[lane] =
          static_cast<std::int16_t>(out.half_lanes[0][lane] + out.half_lanes[1][lane]);
    }
    out.sum = out.half_sums[0] + out.half_sums[1];
    out.scaled_sum = out.scale * static_cast<float>(out.sum);
  }
}

constexpr GemmKernels kernels() {
  GemmKernels table{};
  table.panels[static_cast<int>(DType::kF32)] = plain_panels<float, same>;
  table.panels[static_cast<int>(DType::kF16)] = plain_panels<std::uint16_t, f16_to_f32>;
  table.panels[static_cast<int>(DType::kBF16)] = plain_panels<std::uint16_t, bf16_to_f32>;
#define DUNLIN_KERNEL(name) \
  table.panels[static_cast<int>(DType::k##name)] = block_panels<formats::name>;
  DUNLIN_PANEL_FORMATS(DUNLIN_KERNEL)
#undef DUNLIN_KERNEL
  table.quantize_row = quantize_row;
  return table;
}

}  // namespace

extern const GemmKernels kReferenceQ8Gemm = kernels();

}  // namespace dunlin
