// Quantisation of activations with NEON. Included by gemm_arm_neon.cc only.
#pragma once

#include <arm_neon.h>

#include "kernels/gemm_neon_scales.h"
#include "kernels/gemm_rows.h"

namespace dunlin {
namespace {

// The codes of 32 columns and their scale; see Activations for the rule.
struct QuantisedBlock {
  int8x16_t q[2];
  float scale;
};

DUNLIN_INLINE QuantisedBlock quantize_block(const float* x) {
  // As integers magnitudes compare as floats do, and a NaN is above all.
  uint32x4_t top = vdupq_n_u32(0);
  for (int i = 0; i < kBlockCols; i += 4) {
    top = vmaxq_u32(top, vreinterpretq_u32_f32(vabsq_f32(vld1q_f32(x + i))));
  }
  const std::uint32_t bits = vmaxvq_u32(top);
  float max;
  __builtin_memcpy(&max, &bits, sizeof(max));
  if (bits >= 0x7f800000u) return {{vdupq_n_s8(0), vdupq_n_s8(0)}, __builtin_nanf("")};
  if (max < 1e-30f) return {{vdupq_n_s8(0), vdupq_n_s8(0)}, 0};
  const float inverse = 127.0f / max;
  int16x8_t codes[4];
  for (int i = 0; i < 4; ++i) {
    const int32x4_t low = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 8 * i), inverse));
    const int32x4_t high = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 8 * i + 4), inverse));
    codes[i] = vcombine_s16(vmovn_s32(low), vmovn_s32(high));
  }
  return {{vcombine_s8(vmovn_s16(codes[0]), vmovn_s16(codes[1])),
           vcombine_s8(vmovn_s16(codes[2]), vmovn_s16(codes[3]))},
          max / 127.0f};
}

DUNLIN_INLINE void store_block(const QuantisedBlock& block, ActivationBlock* out) {
  for (int h = 0; h < 2; ++h) {
    vst1q_s8(out->q + 16 * h, block.q[h]);
    // Sums of two columns; a lane takes every other one.
    const int16x8_t pairs = vpaddlq_s8(block.q[h]);
    const int16x4_t fours = vadd_s16(vget_low_s16(pairs), vget_high_s16(pairs));
    const int16x4_t lanes = vadd_s16(fours, vext_s16(fours, fours, 2));
    out->half_lanes[h][0] = vget_lane_s16(lanes, 0);
    out->half_lanes[h][1] = vget_lane_s16(lanes, 1);
    out->half_sums[h] = static_cast<std::int16_t>(out->half_lanes[h][0] + out->half_lanes[h][1]);
  }
  for (int lane = 0; lane < 2; ++lane) {
    out->lanes[lane] =
        static_cast<std::int16_t>(out->half_lanes[0][lane] + out->half_lanes[1][lane]);
  }
  out->sum = out->half_sums[0] + out->half_sums[1];
  out->scale = block.scale;
  out->scaled_sum = block.scale * static_cast<float>(out->sum);
}

void quantize_row(const ActivationRows& rows, std::int64_t token, const float* x,
                  std::int64_t num_cols) {
  ActivationBlock* out = rows.blocks + token * rows.stride;
  for (std::int64_t k = 0; k < num_cols; k += kBlockCols, ++out) {
    if (num_cols - k >= kBlockCols) {
      store_block(quantize_block(x + k), out);
    } else {
      float padded[kBlockCols] = {};
      for (std::int64_t i = 0; i < num_cols - k; ++i) padded[i] = x[k + i];
      store_block(quantize_block(padded), out);
    }
  }
}

}  // namespace
}  // namespace dunlin
