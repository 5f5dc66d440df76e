// Unpacking of scale records (quant/panel_scales.h) with NEON. Included by gemm_arm_neon.cc only;
// everything has internal linkage.
#pragma once

#include <arm_neon.h>

#include "kernels/gemm_rows.h"
#include "quant/panel_formats.h"

namespace dunlin {
namespace {

DUNLIN_INLINE uint8x16_t load(const std::byte* p) {
  return vld1q_u8(reinterpret_cast<const std::uint8_t*>(p));
}
// Blocks whose scales are unpacked at a time; a multiple of every record's span.
constexpr int kStripBlocks = 32;

// The scales of a strip, ready for the kernels: rows 0-15 side by side.
struct StripScales {
  alignas(64) float d[kStripBlocks][16];
  alignas(64) float m[kStripBlocks][16];
  alignas(64) std::int16_t s[kStripBlocks][2][16];
  alignas(64) std::int16_t t[kStripBlocks][2][16];
};

DUNLIN_INLINE void store_f16(const std::byte* halves, float* out) {
  for (int i = 0; i < 16; i += 8) {
    const float16x8_t eight = vreinterpretq_f16_u8(load(halves + 2 * i));
    vst1q_f32(out + i, vcvt_f32_f16(vget_low_f16(eight)));
    vst1q_f32(out + i + 4, vcvt_high_f32_f16(eight));
  }
}

DUNLIN_INLINE void negate(float* row) {
  for (int i = 0; i < 16; i += 4) vst1q_f32(row + i, vnegq_f32(vld1q_f32(row + i)));
}

DUNLIN_INLINE void copy_row(const float* from, float* to) {
  for (int i = 0; i < 16; i += 4) vst1q_f32(to + i, vld1q_f32(from + i));
}

DUNLIN_INLINE void store_wide(int8x16_t bytes, std::int16_t* out) {
  vst1q_s16(out, vmovl_s8(vget_low_s8(bytes)));
  vst1q_s16(out + 8, vmovl_high_s8(bytes));
}

// out = factor * bytes.
DUNLIN_INLINE void store_scaled(int8x16_t bytes, const float* factor, float* out) {
  const int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
  const int32x4_t values[4] = {vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low),
                               vmovl_s16(vget_low_s16(high)), vmovl_high_s16(high)};
  for (int i = 0; i < 4; ++i) {
    vst1q_f32(out + 4 * i, vmulq_f32(vld1q_f32(factor + 4 * i), vcvtq_f32_s32(values[i])));
  }
}

DUNLIN_INLINE uint8x16_t low_nibbles(uint8x16_t v) { return vandq_u8(v, vdupq_n_u8(15)); }
DUNLIN_INLINE uint8x16_t high_nibbles(uint8x16_t v) { return vshrq_n_u8(v, 4); }
// Two bits from bit `from` of each byte, moved to bits 4 and 5.
DUNLIN_INLINE uint8x16_t upper_bits(uint8x16_t v, int from) {
  const int8x16_t left = vdupq_n_s8(static_cast<std::int8_t>(4 - from));  // negative: right
  return vandq_u8(vshlq_u8(v, left), vdupq_n_u8(0x30));
}
// Six bits as a signed number, `minus` taken off.
DUNLIN_INLINE int8x16_t six_bits(uint8x16_t low, uint8x16_t high, std::int8_t minus) {
  return vsubq_s8(vreinterpretq_s8_u8(vorrq_u8(low, high)), vdupq_n_s8(minus));
}

struct SixBitPair {
  int8x16_t a, b;
};
DUNLIN_INLINE SixBitPair six_bit_pair(const std::byte* records, int block, std::int8_t minus) {
  const std::byte* pair = records + block / 2 * scales::kSixBitPairBytes;
  const uint8x16_t low = load(pair + 16 * (block % 2)), high = load(pair + 32);
  return {six_bits(low_nibbles(low), upper_bits(high, 4 * (block % 2)), minus),
          six_bits(high_nibbles(low), upper_bits(high, 4 * (block % 2) + 2), minus)};
}

// unpack(record, out, at): the scales of the record's span, as blocks at, at + 1, ...
DUNLIN_INLINE void unpack(ScalesF16, const std::byte* record, StripScales& out, int at) {
  store_f16(record, out.d[at]);
}

DUNLIN_INLINE void unpack(ScalesMinF16, const std::byte* record, StripScales& out, int at) {
  store_f16(record, out.d[at]);
  store_f16(record + 32, out.m[at]);
}

DUNLIN_INLINE void unpack(ScalesMinSixBit, const std::byte* record, StripScales& out, int at) {
  float d[16], minus[16];
  store_f16(record, d);
  store_f16(record + 32, minus);
  negate(minus);
  for (int block = 0; block < 8; ++block) {
    const SixBitPair pair = six_bit_pair(record + 64, block, 0);
    store_scaled(pair.a, d, out.d[at + block]);
    store_scaled(pair.b, minus, out.m[at + block]);
  }
}

DUNLIN_INLINE void unpack(ScalesHalvesI8, const std::byte* record, StripScales& out, int at) {
  float d[16];
  store_f16(record, d);
  for (int block = 0; block < 8; ++block) {
    copy_row(d, out.d[at + block]);
    for (int h = 0; h < 2; ++h) {
      const uint8x16_t factors = load(record + 32 + (2 * block + h) * 16);
      store_wide(vreinterpretq_s8_u8(factors), out.s[at + block][h]);
    }
  }
}

DUNLIN_INLINE void unpack(ScalesHalvesSixBit, const std::byte* record, StripScales& out, int at) {
  float d[16];
  store_f16(record, d);
  for (int block = 0; block < 8; ++block) {
    const SixBitPair pair = six_bit_pair(record + 32, block, 32);
    copy_row(d, out.d[at + block]);
    store_wide(pair.a, out.s[at + block][0]);
    store_wide(pair.b, out.s[at + block][1]);
  }
}

DUNLIN_INLINE void unpack(ScalesHalvesMin, const std::byte* record, StripScales& out, int at) {
  float d[16], minus[16];
  store_f16(record, d);
  store_f16(record + 32, minus);
  negate(minus);
  for (int block = 0; block < 8; ++block) {
    copy_row(d, out.d[at + block]);
    copy_row(minus, out.m[at + block]);
    for (int h = 0; h < 2; ++h) {
      const uint8x16_t factors = load(record + 64 + (2 * block + h) * 16);
      store_wide(vreinterpretq_s8_u8(low_nibbles(factors)), out.s[at + block][h]);
      store_wide(vreinterpretq_s8_u8(high_nibbles(factors)), out.t[at + block][h]);
    }
  }
}

DUNLIN_INLINE void unpack(ScalesSixBit, const std::byte* record, StripScales& out, int at) {
  float d[16];
  store_f16(record, d);
  for (int block = 0; block < 8; ++block) {
    const uint8x16_t nibbles = load(record + 32 + block / 2 * 16);
    const uint8x16_t low = block % 2 == 0 ? low_nibbles(nibbles) : high_nibbles(nibbles);
    const uint8x16_t high = upper_bits(load(record + 96 + block / 4 * 16), 2 * (block % 4));
    store_scaled(six_bits(low, high, 32), d, out.d[at + block]);
  }
}

// The scales of blocks first .. first + count - 1 of a panel; first is a multiple of the span.
template <typename Scales>
void unpack_scales(const std::byte* records, std::int64_t first, int count, StripScales& out) {
  const std::byte* record = records + first / Scales::kSpanBlocks * Scales::kRecordBytes;
  for (int at = 0; at < count; at += Scales::kSpanBlocks, record += Scales::kRecordBytes) {
    unpack(Scales{}, record, out, at);
  }
}

}  // namespace
}  // namespace dunlin
