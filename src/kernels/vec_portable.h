// Eight float lanes with the compiler's vector extension: what the float kernels (*.inc) are
// written in, for machines without a file of their own. fma is a rounded product and a sum here,
// unless DUNLIN_EXACT_FMA is defined: then it is one rounding, slow, and every result equals
// AVX2's bit for bit. Everything has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dunlin {
namespace {

typedef float Vec __attribute__((vector_size(32)));
typedef std::uint32_t VecBits __attribute__((vector_size(32)));
typedef std::uint16_t VecHalf __attribute__((vector_size(16)));
constexpr int kLanes = 8;
constexpr int kVecRegisters = 8;  // 16 of half the size in baseline x86-64

inline Vec load(const float* p) {
  Vec v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, Vec v) { __builtin_memcpy(p, &v, sizeof v); }
inline Vec set1(float x) { return Vec{x, x, x, x, x, x, x, x}; }
inline Vec add(Vec a, Vec b) { return a + b; }
inline Vec sub(Vec a, Vec b) { return a - b; }
inline Vec mul(Vec a, Vec b) { return a * b; }
inline Vec div(Vec a, Vec b) { return a / b; }
#ifdef DUNLIN_EXACT_FMA
inline Vec fma(Vec a, Vec b, Vec c) {
  for (int i = 0; i < kLanes; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
}
#else
inline Vec fma(Vec a, Vec b, Vec c) { return a * b + c; }
#endif
// As x86's: the second operand where either is NaN.
inline Vec max(Vec a, Vec b) {
  const VecBits mask = (VecBits)(a > b);
  return (Vec)((mask & (VecBits)a) | (~mask & (VecBits)b));
}
inline Vec min(Vec a, Vec b) {
  const VecBits mask = (VecBits)(a < b);
  return (Vec)((mask & (VecBits)a) | (~mask & (VecBits)b));
}
// v where x >= threshold, else 0.
inline Vec zero_below(Vec x, Vec threshold, Vec v) {
  return (Vec)((VecBits)(x >= threshold) & (VecBits)v);
}
// v * 2^n, n in the low bits of `shifted` = n + 1.5 * 2^23.
inline Vec scale_pow2(Vec v, Vec shifted) { return (Vec)((VecBits)v + ((VecBits)shifted << 23)); }

// Rows become columns.
inline void transpose(Vec (&square)[kLanes]) {
  float rows[kLanes][kLanes], columns[kLanes][kLanes];
  for (int i = 0; i < kLanes; ++i) store(rows[i], square[i]);
  for (int i = 0; i < kLanes; ++i)
    for (int j = 0; j < kLanes; ++j) columns[j][i] = rows[i][j];
  for (int i = 0; i < kLanes; ++i) square[i] = load(columns[i]);
}

inline float sum_lanes(Vec v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}
inline float max_lanes(Vec v) {
  float best = v[0];
  for (int i = 1; i < kLanes; ++i) best = v[i] > best ? v[i] : best;
  return best;
}

inline VecBits load_halves(const std::uint16_t* p) {
  VecHalf h;
  __builtin_memcpy(&h, p, sizeof h);
  return __builtin_convertvector(h, VecBits);
}
inline void store_halves(std::uint16_t* p, VecBits v) {
  const VecHalf h = __builtin_convertvector(v, VecHalf);
  __builtin_memcpy(p, &h, sizeof h);
}
inline VecBits bits1(std::uint32_t x) { return VecBits{x, x, x, x, x, x, x, x}; }

// Exponents are rebased by 112 = 127 - 15. A subnormal half is a float at exponent 113 minus that
// exponent's implicit bit; exponent 31 is rebased twice.
inline Vec load_f16(const std::uint16_t* p) {
  const VecBits h = load_halves(p);
  const VecBits magnitude = (h & bits1(0x7fff)) << 13;
  const VecBits exponent = magnitude & bits1(0x0f800000);
  const VecBits rebase = bits1(112u << 23);
  const VecBits infinite = (VecBits)(exponent == bits1(0x0f800000)) & rebase;
  const VecBits normal = magnitude + rebase + infinite;
  const VecBits subnormal =
      (VecBits)((Vec)(magnitude + bits1(113u << 23)) - (Vec)bits1(113u << 23));
  const VecBits is_subnormal = (VecBits)(exponent == bits1(0));
  return (Vec)((is_subnormal & subnormal) | (~is_subnormal & normal) | ((h & bits1(0x8000)) << 16));
}
// x is within the range of a half. Adding 1/2 puts the last bit of a subnormal half (2^-24) at the
// float's last bit, so the addition rounds as wanted.
inline void store_f16(std::uint16_t* p, Vec x) {
  const VecBits bits = (VecBits)x;
  const VecBits sign = (bits & bits1(0x80000000)) >> 16;
  const VecBits magnitude = bits & bits1(0x7fffffff);
  const VecBits odd = (magnitude >> 13) & bits1(1);
  const VecBits normal = (magnitude - bits1(112u << 23) + bits1(0xfff) + odd) >> 13;
  const VecBits subnormal = (VecBits)((Vec)magnitude + set1(0.5f)) - (VecBits)set1(0.5f);
  const VecBits is_subnormal = (VecBits)(magnitude < bits1(113u << 23));
  store_halves(p, (is_subnormal & subnormal) | (~is_subnormal & normal) | sign);
}
inline Vec load_bf16(const std::uint16_t* p) { return (Vec)(load_halves(p) << 16); }
inline void store_bf16(std::uint16_t* p, Vec x) {
  const VecBits bits = (VecBits)x;
  store_halves(p, (bits + bits1(0x7fff) + ((bits >> 16) & bits1(1))) >> 16);
}

typedef std::uint8_t VecBytes __attribute__((vector_size(8)));
inline VecBits load_bytes(const std::uint8_t* p) {
  VecBytes bytes;
  __builtin_memcpy(&bytes, p, sizeof bytes);
  return __builtin_convertvector(bytes, VecBits);
}
// A byte's exponent and mantissa are moved to a float's; the product takes the difference of the
// biases, and makes subnormals right as well.
inline Vec load_e4m3(const std::uint8_t* p) {
  const VecBits x = load_bytes(p);
  return (Vec)((x & bits1(0x80)) << 24 | (x & bits1(0x7f)) << 20) * set1(0x1p120f);
}
inline Vec load_e5m2(const std::uint8_t* p) {
  const VecBits x = load_bytes(p);
  return (Vec)((x & bits1(0x80)) << 24 | (x & bits1(0x7f)) << 21) * set1(0x1p112f);
}
// (x >> shift) & mask of 32-bit words.
inline Vec load_codes(const std::byte* p, int shift, std::uint32_t mask) {
  VecBits words;
  __builtin_memcpy(&words, p, sizeof words);
  return __builtin_convertvector(words >> static_cast<std::uint32_t>(shift) & bits1(mask), Vec);
}
// Four bits of 8 words: those from `shift` + `half` on, of 8 channels of the 16 that the words
// hold.
inline Vec load_half_codes(const std::byte* p, int shift, int half) {
  return load_codes(p, shift + half, 15);
}
inline void prefetch(const void* p) { __builtin_prefetch(p); }

}  // namespace
}  // namespace dunlin
