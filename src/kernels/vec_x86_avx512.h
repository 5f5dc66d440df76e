// Sixteen float lanes of AVX-512: what the float kernels (*.inc) are written in. Conversions go
// through 256-bit halves, which SIMDe has, so that the same text is tested on AVX2 machines
// (DUNLIN_SIMDE). Included by one .cc file; everything has internal linkage.
#pragma once

#ifdef DUNLIN_SIMDE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#endif
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/kv_scale.h"

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
// Bytes whose exponents and mantissas stand in a half's bits: e5m2 is a half without its end, and
// an e4m3's exponent is 8 less than a half's.
inline __m256i load_bytes(const std::uint8_t* p) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline Vec widen_f16(__m256i halves) {
#ifdef DUNLIN_SIMDE
  return join_halves(_mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
                     _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1)));
#else
  return _mm512_cvtph_ps(halves);
#endif
}
inline Vec load_e5m2(const std::uint8_t* p) {
  return widen_f16(_mm256_slli_epi16(load_bytes(p), 8));
}
inline Vec load_e4m3(const std::uint8_t* p) {
  const __m256i x = load_bytes(p);
  const __m256i size = _mm256_slli_epi16(_mm256_and_si256(x, _mm256_set1_epi16(0x7f)), 7);
  const __m256i sign = _mm256_slli_epi16(_mm256_and_si256(x, _mm256_set1_epi16(0x80)), 8);
  return mul(widen_f16(_mm256_or_si256(size, sign)), set1(256));
}
inline Vec floats_of(__m512i x) {
#ifdef DUNLIN_SIMDE
  return join_halves(_mm256_cvtepi32_ps(_mm512_castsi512_si256(x)),
                     _mm256_cvtepi32_ps(_mm512_extracti64x4_epi64(x, 1)));
#else
  return _mm512_cvtepi32_ps(x);
#endif
}
// (x >> shift) & mask of 32-bit words.
inline Vec load_codes(const std::byte* p, int shift, std::uint32_t mask) {
  const __m512i words = _mm512_loadu_si512(p);
  const __m512i codes = _mm512_and_si512(_mm512_srl_epi32(words, _mm_cvtsi32_si128(shift)),
                                         _mm512_set1_epi32(static_cast<int>(mask)));
  return floats_of(codes);
}
// Four bits of 8 words from `shift` on, then the four bits above them: 16 channels.
inline Vec load_half_codes(const std::byte* p, int shift, int) {
  const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i low = _mm256_srl_epi32(words, _mm_cvtsi32_si128(shift));
  const __m256i high = _mm256_srli_epi32(low, 4);
  const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  return floats_of(_mm512_and_si512(both, _mm512_set1_epi32(15)));
}

// Bytes, for attention_dots.inc.
#define DUNLIN_BYTE_DOTS
typedef __m512i Ints;
inline Ints load_ints(const void* p) { return _mm512_loadu_si512(p); }
inline void store_ints(void* p, Ints x) { _mm512_storeu_si512(p, x); }
inline Ints all_ints(std::int32_t x) { return _mm512_set1_epi32(x); }
inline Ints four_bytes(const std::int8_t* p) {
  std::int32_t word;
  __builtin_memcpy(&word, p, sizeof word);
  return _mm512_set1_epi32(word);
}
// sum += four unsigned bytes times four signed ones, word by word.
inline Ints dot_bytes(Ints sum, Ints codes, Ints bytes) {
  return _mm512_dpbusd_epi32(sum, codes, bytes);
}
inline Ints low_nibbles(Ints x, int shift) {
  return _mm512_and_si512(_mm512_srl_epi32(x, _mm_cvtsi32_si128(shift)),
                          _mm512_set1_epi32(0x0f0f0f0f));
}
// The low halves of 32 bytes, then their high halves.
inline Ints both_nibbles(const std::byte* p) {
  const Ints twice =
      _mm512_broadcast_i64x4(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  const Ints shifts = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi32(4), 1);
  return _mm512_and_si512(_mm512_srlv_epi32(twice, shifts), _mm512_set1_epi32(0x0f0f0f0f));
}
// Four by four bytes in each quarter: rows become columns.
inline Ints turn_quads(Ints x) {
  const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_shuffle_epi8(x, _mm512_broadcast_i32x4(order));
}
// Scales and zeros of 16 words of kernels/kv_scale.h.
inline Ints load_words(const std::uint16_t* p) {
  const __m256i low = _mm256_cvtepu16_epi32(load_halves(p));
  const __m256i high = _mm256_cvtepu16_epi32(load_halves(p + 8));
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
inline Vec int4_scales(const std::uint16_t* words) {
  const Ints bits = _mm512_slli_epi32(_mm512_srli_epi32(load_words(words), 6), kInt4ScaleShift);
  return _mm512_castsi512_ps(
      _mm512_add_epi32(bits, _mm512_set1_epi32(static_cast<int>(kInt4ScaleBase))));
}
inline Vec int4_quarters(const std::uint16_t* words) {
  return floats_of(_mm512_and_si512(load_words(words), _mm512_set1_epi32(63)));
}
inline void store_low_bytes(std::int8_t* p, Ints x) {
#ifdef DUNLIN_SIMDE
  std::int32_t words[16];
  store_ints(words, x);
  for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(words[i]);
#else
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x));
#endif
}
// Integers of 15 bits, each in the low bits of a float 1.5 * 2^23 above it, to a high and a low
// byte: the integer is 256 high + low.
inline void store_parts(Vec shifted, std::int8_t* high, std::int8_t* low) {
  const Ints whole = _mm512_sub_epi32(_mm512_castps_si512(shifted), _mm512_set1_epi32(0x4b400000));
  const Ints upper =
      _mm512_sub_epi32(_mm512_srli_epi32(_mm512_add_epi32(whole, _mm512_set1_epi32(0x8080)), 8),
                       _mm512_set1_epi32(0x80));
  store_low_bytes(high, upper);
  store_low_bytes(low, _mm512_sub_epi32(whole, _mm512_slli_epi32(upper, 8)));
}

inline void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

}  // namespace
}  // namespace dunlin
