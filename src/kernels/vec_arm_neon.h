// Eight float lanes as two NEON vectors: what the float kernels (*.inc) are written in. Eight and
// not four, so that every sum runs in the order of Isa::kReferenceQ8 and equals it bit for bit.
// Included by one .cc file; everything has internal linkage.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

namespace dunlin {
namespace {

struct Vec {
  float32x4_t low, high;
};
constexpr int kLanes = 8;
constexpr int kVecRegisters = 16;  // 32 of half the size

inline Vec load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
inline void store(float* p, Vec v) {
  vst1q_f32(p, v.low);
  vst1q_f32(p + 4, v.high);
}
inline Vec set1(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }
inline Vec add(Vec a, Vec b) { return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)}; }
inline Vec sub(Vec a, Vec b) { return {vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)}; }
inline Vec mul(Vec a, Vec b) { return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)}; }
inline Vec div(Vec a, Vec b) { return {vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)}; }
inline Vec fma(Vec a, Vec b, Vec c) {
  return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
}
// As x86's: the second operand where either is NaN.
inline float32x4_t max4(float32x4_t a, float32x4_t b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
inline float32x4_t min4(float32x4_t a, float32x4_t b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
inline Vec max(Vec a, Vec b) { return {max4(a.low, b.low), max4(a.high, b.high)}; }
inline Vec min(Vec a, Vec b) { return {min4(a.low, b.low), min4(a.high, b.high)}; }
// v where x >= threshold, else 0.
inline float32x4_t zero_below4(float32x4_t x, float32x4_t threshold, float32x4_t v) {
  return vreinterpretq_f32_u32(vandq_u32(vcgeq_f32(x, threshold), vreinterpretq_u32_f32(v)));
}
inline Vec zero_below(Vec x, Vec threshold, Vec v) {
  return {zero_below4(x.low, threshold.low, v.low), zero_below4(x.high, threshold.high, v.high)};
}
// v * 2^n, n in the low bits of `shifted` = n + 1.5 * 2^23.
inline float32x4_t scale_pow2_4(float32x4_t v, float32x4_t shifted) {
  const uint32x4_t exponent = vshlq_n_u32(vreinterpretq_u32_f32(shifted), 23);
  return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(v), exponent));
}
inline Vec scale_pow2(Vec v, Vec shifted) {
  return {scale_pow2_4(v.low, shifted.low), scale_pow2_4(v.high, shifted.high)};
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
  const float32x4_t four = vaddq_f32(v.low, v.high);
  return vpadds_f32(vadd_f32(vget_low_f32(four), vget_high_f32(four)));
}
inline float max_lanes(Vec v) {
  float lanes[4];
  vst1q_f32(lanes, max4(v.low, v.high));
  float best = lanes[0];
  for (int i = 1; i < 4; ++i) best = lanes[i] > best ? lanes[i] : best;
  return best;
}

inline Vec load_f16(const std::uint16_t* p) {
  const float16x8_t halves = vreinterpretq_f16_u16(vld1q_u16(p));
  return {vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)};
}
inline void store_f16(std::uint16_t* p, Vec x) {
  vst1q_u16(p, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(x.low), x.high)));
}
inline Vec load_bf16(const std::uint16_t* p) {
  const uint16x8_t halves = vld1q_u16(p);
  return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(halves), 16)),
          vreinterpretq_f32_u32(vshll_high_n_u16(halves, 16))};
}
inline uint32x4_t rounded_bf16(float32x4_t x) {
  const uint32x4_t bits = vreinterpretq_u32_f32(x);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  return vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
}
inline void store_bf16(std::uint16_t* p, Vec x) {
  vst1q_u16(p, vshrn_high_n_u32(vshrn_n_u32(rounded_bf16(x.low), 16), rounded_bf16(x.high), 16));
}
// Bytes whose exponents and mantissas stand in a half's bits: e5m2 is a half without its end, and
// an e4m3's exponent is 8 less than a half's.
inline Vec widen_f16(uint16x8_t bits) {
  const float16x8_t halves = vreinterpretq_f16_u16(bits);
  return {vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)};
}
inline Vec load_e5m2(const std::uint8_t* p) {
  return widen_f16(vshlq_n_u16(vmovl_u8(vld1_u8(p)), 8));
}
inline Vec load_e4m3(const std::uint8_t* p) {
  const uint16x8_t x = vmovl_u8(vld1_u8(p));
  const uint16x8_t size = vshlq_n_u16(vandq_u16(x, vdupq_n_u16(0x7f)), 7);
  const uint16x8_t sign = vshlq_n_u16(vandq_u16(x, vdupq_n_u16(0x80)), 8);
  return mul(widen_f16(vorrq_u16(size, sign)), set1(256));
}
// (x >> shift) & mask of 32-bit words.
inline Vec load_codes(const std::byte* p, int shift, std::uint32_t mask) {
  const std::uint32_t* words = reinterpret_cast<const std::uint32_t*>(p);
  const int32x4_t right = vdupq_n_s32(-shift);
  const uint32x4_t low = vandq_u32(vshlq_u32(vld1q_u32(words), right), vdupq_n_u32(mask));
  const uint32x4_t high = vandq_u32(vshlq_u32(vld1q_u32(words + 4), right), vdupq_n_u32(mask));
  return {vcvtq_f32_u32(low), vcvtq_f32_u32(high)};
}
// Four bits of 8 words: those from `shift` + `half` on, of 8 channels of the 16 that the words
// hold.
inline Vec load_half_codes(const std::byte* p, int shift, int half) {
  return load_codes(p, shift + half, 15);
}
inline void prefetch(const void* p) { __builtin_prefetch(p); }

}  // namespace
}  // namespace dunlin
