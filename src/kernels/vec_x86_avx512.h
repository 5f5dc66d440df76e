// Sixteen float lanes of AVX-512: what the float kernels (*.inc) are written in. Conversions go
// through 256-bit halves, which SIMDe has, so that the same text is tested on AVX2 machines
// (DUNLIN_SIMDE). Included by one .cc file; everything has internal linkage.
#pragma once

#ifdef DUNLIN_SIMDE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#endif
#include <immintrin.h>

#include <cstdint>

namespace dunlin {
namespace {

typedef __m512 Vec;
constexpr int kLanes = 16;
constexpr int kVecRegisters = 32;

inline Vec load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
inline Vec set1(float x) { return _mm512_set1_ps(x); }
inline Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
inline Vec sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
inline Vec mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
inline Vec div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
inline Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
// The second operand where either is NaN.
inline Vec max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
inline Vec min(Vec a, Vec b) { return _mm512_min_ps(a, b); }
// v where x >= threshold, else 0.
inline Vec zero_below(Vec x, Vec threshold, Vec v) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, threshold, _CMP_GE_OQ), v);
}
// v * 2^n, n in the low bits of `shifted` = n + 1.5 * 2^23.
inline Vec scale_pow2(Vec v, Vec shifted) {
  const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(v), exponent));
}

inline __m256 low_half(Vec v) { return _mm512_castps512_ps256(v); }
inline __m256 high_half(Vec v) {
  return _mm256_castsi256_ps(_mm512_extracti64x4_epi64(_mm512_castps_si512(v), 1));
}
inline Vec join_halves(__m256 low, __m256 high) {
  return _mm512_castsi512_ps(_mm512_inserti64x4(_mm512_castsi256_si512(_mm256_castps_si256(low)),
                                                _mm256_castps_si256(high), 1));
}

// Rows become columns.
inline void transpose(Vec (&square)[kLanes]) {
  float rows[kLanes][kLanes], columns[kLanes][kLanes];
  for (int i = 0; i < kLanes; ++i) store(rows[i], square[i]);
  for (int i = 0; i < kLanes; ++i)
    for (int j = 0; j < kLanes; ++j) columns[j][i] = rows[i][j];
  for (int i = 0; i < kLanes; ++i) square[i] = load(columns[i]);
}

inline float sum_lanes(Vec v) {
  const __m256 eight = _mm256_add_ps(low_half(v), high_half(v));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float max_lanes(Vec v) {
  const __m256 eight = _mm256_max_ps(low_half(v), high_half(v));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

inline __m128i load_halves(const std::uint16_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
inline void store_halves(std::uint16_t* p, __m128i v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v);
}
inline void store_f16(std::uint16_t* p, Vec x) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  store_halves(p, _mm256_cvtps_ph(low_half(x), kNearest));
  store_halves(p + 8, _mm256_cvtps_ph(high_half(x), kNearest));
}
inline __m256 widen_bf16(__m128i halves) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
#ifdef DUNLIN_SIMDE  // SIMDe 0.7.4 lacks the two widening conversions
inline Vec load_f16(const std::uint16_t* p) {
  return join_halves(_mm256_cvtph_ps(load_halves(p)), _mm256_cvtph_ps(load_halves(p + 8)));
}
inline Vec load_bf16(const std::uint16_t* p) {
  return join_halves(widen_bf16(load_halves(p)), widen_bf16(load_halves(p + 8)));
}
#else
inline Vec load_f16(const std::uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline Vec load_bf16(const std::uint16_t* p) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}
#endif
inline __m128i narrow_bf16(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i high = _mm256_srli_epi32(rounded, 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}
inline void store_bf16(std::uint16_t* p, Vec x) {
  store_halves(p, narrow_bf16(low_half(x)));
  store_halves(p + 8, narrow_bf16(high_half(x)));
}
inline void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

}  // namespace
}  // namespace dunlin
