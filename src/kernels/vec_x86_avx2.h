// Eight float lanes of AVX2 + FMA + F16C: what the float kernels (*.inc) are written in.
// Included by one .cc file; everything has internal linkage.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace dunlin {
namespace {

typedef __m256 Vec;
constexpr int kLanes = 8;
constexpr int kVecRegisters = 16;

inline Vec load(const float* p) { return _mm256_loadu_ps(p); }
inline void store(float* p, Vec v) { _mm256_storeu_ps(p, v); }
inline Vec set1(float x) { return _mm256_set1_ps(x); }
inline Vec add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
inline Vec sub(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
inline Vec mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
inline Vec div(Vec a, Vec b) { return _mm256_div_ps(a, b); }
inline Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
// The second operand where either is NaN.
inline Vec max(Vec a, Vec b) { return _mm256_max_ps(a, b); }
inline Vec min(Vec a, Vec b) { return _mm256_min_ps(a, b); }
// v where x >= threshold, else 0.
inline Vec zero_below(Vec x, Vec threshold, Vec v) {
  return _mm256_and_ps(_mm256_cmp_ps(x, threshold, _CMP_GE_OQ), v);
}
// v * 2^n, n in the low bits of `shifted` = n + 1.5 * 2^23.
inline Vec scale_pow2(Vec v, Vec shifted) {
  const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(v), exponent));
}

// Rows become columns: single elements change places, then pairs, then halves.
inline void transpose(Vec (&v)[kLanes]) {
  Vec ones[kLanes], twos[kLanes];
  for (int i = 0; i < kLanes; i += 2) {
    ones[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
    ones[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
  }
  for (int i = 0; i < kLanes; i += 4) {
    twos[i] = _mm256_shuffle_ps(ones[i], ones[i + 2], 0x44);
    twos[i + 1] = _mm256_shuffle_ps(ones[i], ones[i + 2], 0xee);
    twos[i + 2] = _mm256_shuffle_ps(ones[i + 1], ones[i + 3], 0x44);
    twos[i + 3] = _mm256_shuffle_ps(ones[i + 1], ones[i + 3], 0xee);
  }
  for (int i = 0; i < kLanes / 2; ++i) {
    v[i] = _mm256_permute2f128_ps(twos[i], twos[i + 4], 0x20);
    v[i + 4] = _mm256_permute2f128_ps(twos[i], twos[i + 4], 0x31);
  }
}

inline float sum_lanes(Vec v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float max_lanes(Vec v) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

inline __m128i load_halves(const std::uint16_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
inline void store_halves(std::uint16_t* p, __m128i v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v);
}
inline Vec load_f16(const std::uint16_t* p) { return _mm256_cvtph_ps(load_halves(p)); }
inline void store_f16(std::uint16_t* p, Vec x) {
  store_halves(p, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline Vec load_bf16(const std::uint16_t* p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_halves(p)), 16));
}
inline void store_bf16(std::uint16_t* p, Vec x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i high = _mm256_srli_epi32(rounded, 16);
  store_halves(p,
               _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1)));
}
// Bytes whose exponents and mantissas stand in a half's bits: e5m2 is a half without its end, and
// an e4m3's exponent is 8 less than a half's.
inline __m128i load_bytes(const std::uint8_t* p) {
  return _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
inline Vec load_e5m2(const std::uint8_t* p) {
  return _mm256_cvtph_ps(_mm_slli_epi16(load_bytes(p), 8));
}
inline Vec load_e4m3(const std::uint8_t* p) {
  const __m128i x = load_bytes(p);
  const __m128i size = _mm_slli_epi16(_mm_and_si128(x, _mm_set1_epi16(0x7f)), 7);
  const __m128i sign = _mm_slli_epi16(_mm_and_si128(x, _mm_set1_epi16(0x80)), 8);
  return _mm256_mul_ps(_mm256_cvtph_ps(_mm_or_si128(size, sign)), _mm256_set1_ps(256));
}
// (x >> shift) & mask of 32-bit words.
inline Vec load_codes(const std::byte* p, int shift, std::uint32_t mask) {
  const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i codes = _mm256_and_si256(_mm256_srl_epi32(words, _mm_cvtsi32_si128(shift)),
                                         _mm256_set1_epi32(static_cast<int>(mask)));
  return _mm256_cvtepi32_ps(codes);
}
// Four bits of 8 words: those from `shift` + `half` on, of 8 channels of the 16 that the words
// hold.
inline Vec load_half_codes(const std::byte* p, int shift, int half) {
  return load_codes(p, shift + half, 15);
}
inline void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

}  // namespace
}  // namespace dunlin
