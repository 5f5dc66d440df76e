// Unpacking of scale records (quant/panel_scales.h) with AVX2, for the AVX2 and AVX-512 kernels.
// Included by per-ISA files only; everything has internal linkage.
#pragma once

#include <immintrin.h>

#include "kernels/gemm_rows.h"
#include "quant/panel_formats.h"

namespace dunlin {
namespace {

DUNLIN_INLINE __m256i load(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
DUNLIN_INLINE __m128i load128(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}
// Blocks whose scales are unpacked at a time; a multiple of every record's span.
constexpr int kStripBlocks = 32;

// The scales of a strip, ready for the kernels: rows 0-15 side by side.
struct StripScales {
  alignas(64) float d[kStripBlocks][16];
  alignas(64) float m[kStripBlocks][16];
  alignas(64) std::int16_t s[kStripBlocks][2][32];  // each factor twice: one a lane
  alignas(64) std::int16_t t[kStripBlocks][16][2];  // both halves side by side
};

DUNLIN_INLINE void store_f16(const std::byte* halves, float* out) {
  _mm256_store_ps(out, _mm256_cvtph_ps(load128(halves)));
  _mm256_store_ps(out + 8, _mm256_cvtph_ps(load128(halves + 16)));
}

// out = factor * bytes, bytes signed.
DUNLIN_INLINE void store_scaled(__m128i bytes, const float* factor, float* out) {
  const __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
  const __m256 high = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)));
  _mm256_store_ps(out, _mm256_mul_ps(_mm256_load_ps(factor), low));
  _mm256_store_ps(out + 8, _mm256_mul_ps(_mm256_load_ps(factor + 8), high));
}

DUNLIN_INLINE void store_twice(__m128i bytes, std::int16_t* out) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(out),
                     _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(bytes, bytes)));
  _mm256_store_si256(reinterpret_cast<__m256i*>(out + 16),
                     _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(bytes, bytes)));
}

DUNLIN_INLINE void store_row_pairs(__m128i a, __m128i b, std::int16_t (*out)[2]) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(out[0]),
                     _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(a, b)));
  _mm256_store_si256(reinterpret_cast<__m256i*>(out[8]),
                     _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(a, b)));
}

DUNLIN_INLINE void copy_row(const float* from, float* to) {
  _mm256_store_ps(to, _mm256_load_ps(from));
  _mm256_store_ps(to + 8, _mm256_load_ps(from + 8));
}

DUNLIN_INLINE __m128i low_nibbles(__m128i v) { return _mm_and_si128(v, _mm_set1_epi8(15)); }
DUNLIN_INLINE __m128i high_nibbles(__m128i v) {
  return _mm_and_si128(_mm_srli_epi16(v, 4), _mm_set1_epi8(15));
}
// Two bits from bit `from` of each byte, moved to bits 4 and 5.
DUNLIN_INLINE __m128i upper_bits(__m128i v, int from) {
  return _mm_and_si128(_mm_slli_epi16(_mm_srl_epi16(v, _mm_cvtsi32_si128(from)), 4),
                       _mm_set1_epi8(0x30));
}

DUNLIN_INLINE void six_bits(const std::byte* records, int block, __m128i& a, __m128i& b) {
  const std::byte* pair = records + block / 2 * scales::kSixBitPairBytes;
  const __m128i low = load128(pair + 16 * (block % 2)), high = load128(pair + 32);
  a = _mm_or_si128(low_nibbles(low), upper_bits(high, 4 * (block % 2)));
  b = _mm_or_si128(high_nibbles(low), upper_bits(high, 4 * (block % 2) + 2));
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
  alignas(32) float d[16], minus[16];
  store_f16(record, d);
  store_f16(record + 32, minus);
  for (int r = 0; r < 16; ++r) minus[r] = -minus[r];
  for (int block = 0; block < 8; ++block) {
    __m128i a, b;
    six_bits(record + 64, block, a, b);
    store_scaled(a, d, out.d[at + block]);
    store_scaled(b, minus, out.m[at + block]);
  }
}

DUNLIN_INLINE void unpack(ScalesHalvesI8, const std::byte* record, StripScales& out, int at) {
  alignas(32) float d[16];
  store_f16(record, d);
  for (int block = 0; block < 8; ++block) {
    copy_row(d, out.d[at + block]);
    for (int h = 0; h < 2; ++h) {
      store_twice(load128(record + 32 + (2 * block + h) * 16), out.s[at + block][h]);
    }
  }
}

DUNLIN_INLINE void unpack(ScalesHalvesSixBit, const std::byte* record, StripScales& out, int at) {
  alignas(32) float d[16];
  store_f16(record, d);
  for (int block = 0; block < 8; ++block) {
    __m128i a, b;
    six_bits(record + 32, block, a, b);
    copy_row(d, out.d[at + block]);
    store_twice(_mm_sub_epi8(a, _mm_set1_epi8(32)), out.s[at + block][0]);
    store_twice(_mm_sub_epi8(b, _mm_set1_epi8(32)), out.s[at + block][1]);
  }
}

DUNLIN_INLINE void unpack(ScalesHalvesMin, const std::byte* record, StripScales& out, int at) {
  alignas(32) float d[16], minus[16];
  store_f16(record, d);
  store_f16(record + 32, minus);
  for (int r = 0; r < 16; ++r) minus[r] = -minus[r];
  for (int block = 0; block < 8; ++block) {
    copy_row(d, out.d[at + block]);
    copy_row(minus, out.m[at + block]);
    const __m128i first = load128(record + 64 + 32 * block);
    const __m128i second = load128(record + 64 + 32 * block + 16);
    store_twice(low_nibbles(first), out.s[at + block][0]);
    store_twice(low_nibbles(second), out.s[at + block][1]);
    store_row_pairs(high_nibbles(first), high_nibbles(second), out.t[at + block]);
  }
}

DUNLIN_INLINE void unpack(ScalesSixBit, const std::byte* record, StripScales& out, int at) {
  alignas(32) float d[16];
  store_f16(record, d);
  for (int block = 0; block < 8; ++block) {
    const __m128i nibbles = load128(record + 32 + block / 2 * 16);
    const __m128i low = block % 2 == 0 ? low_nibbles(nibbles) : high_nibbles(nibbles);
    const __m128i high = upper_bits(load128(record + 96 + block / 4 * 16), 2 * (block % 4));
    store_scaled(_mm_sub_epi8(_mm_or_si128(low, high), _mm_set1_epi8(32)), d, out.d[at + block]);
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
