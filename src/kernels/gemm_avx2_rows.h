// Quantisation of activations with AVX2, for the AVX2 and AVX-512 kernels. Included by per-ISA
// files only.
#pragma once

#include "kernels/gemm_avx2_scales.h"
#include "kernels/gemm_rows.h"

namespace dunlin {
namespace {

// The codes of 32 columns and their scale; see Activations for the rule.
DUNLIN_INLINE __m256i quantize_block(const float* x, float* scale) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  // As integers magnitudes compare as floats do, and a NaN is above all.
  __m256i top = _mm256_and_si256(load(x), magnitude);
  for (int i = 8; i < 32; i += 8) {
    top = _mm256_max_epi32(top, _mm256_and_si256(load(x + i), magnitude));
  }
  __m128i max4 = _mm_max_epi32(_mm256_castsi256_si128(top), _mm256_extracti128_si256(top, 1));
  max4 = _mm_max_epi32(max4, _mm_shuffle_epi32(max4, 0x4e));
  max4 = _mm_max_epi32(max4, _mm_shuffle_epi32(max4, 0xb1));
  const float max = _mm_cvtss_f32(_mm_castsi128_ps(max4));
  if (_mm_cvtsi128_si32(max4) >= 0x7f800000) {
    *scale = __builtin_nanf("");
    return _mm256_setzero_si256();
  }
  if (max < 1e-30f) {
    *scale = 0;
    return _mm256_setzero_si256();
  }
  *scale = max / 127.0f;
  const __m256 inverse = _mm256_set1_ps(127.0f / max);
  __m256i codes[4];
  for (int i = 0; i < 4; ++i) {
    codes[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), inverse));
  }
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(codes[0], codes[1]),
                                           _mm256_packs_epi32(codes[2], codes[3]));
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

DUNLIN_INLINE void store_block(__m256i q, float scale, ActivationBlock* out) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(out->q), q);
  // int16 sums of two columns; a lane takes every other one.
  __m256i lanes = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
  lanes = _mm256_add_epi16(lanes, _mm256_shuffle_epi32(lanes, 0x4e));
  lanes = _mm256_add_epi16(lanes, _mm256_shuffle_epi32(lanes, 0xb1));
  const __m128i first = _mm256_castsi256_si128(lanes), second = _mm256_extracti128_si256(lanes, 1);
  const __m128i halves = _mm_unpacklo_epi32(first, second);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(out->half_lanes), halves);
  const int both = _mm_cvtsi128_si32(_mm_add_epi16(first, second));
  __builtin_memcpy(out->lanes, &both, sizeof(both));
  const __m128i sums = _mm_madd_epi16(halves, _mm_set1_epi16(1));
  const int first_sum = _mm_cvtsi128_si32(sums), second_sum = _mm_extract_epi32(sums, 1);
  out->half_sums[0] = static_cast<std::int16_t>(first_sum);
  out->half_sums[1] = static_cast<std::int16_t>(second_sum);
  out->sum = first_sum + second_sum;
  out->scale = scale;
  out->scaled_sum = scale * static_cast<float>(out->sum);
}

void quantize_row(const ActivationRows& rows, std::int64_t token, const float* x,
                  std::int64_t num_cols) {
  ActivationBlock* out = rows.blocks + token * rows.stride;
  for (std::int64_t k = 0; k < num_cols; k += kBlockCols, ++out) {
    float scale;
    if (num_cols - k >= kBlockCols) {
      const __m256i q = quantize_block(x + k, &scale);
      store_block(q, scale, out);
    } else {
      alignas(32) float padded[kBlockCols] = {};
      for (std::int64_t i = 0; i < num_cols - k; ++i) padded[i] = x[k + i];
      const __m256i q = quantize_block(padded, &scale);
      store_block(q, scale, out);
    }
  }
}

}  // namespace
}  // namespace dunlin
