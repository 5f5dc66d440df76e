// How the scales of a panel lie in memory. They come before the codes, in one section: a record
// for each 32 or 256 columns with the values of all 16 rows side by side, the bits as stored.
//
// What a kernel needs of them for one block of 32 columns is BlockScales. With dot the sum of
// (code - zero point) * x over the block, dot0 and dot1 those over its halves, dx the scale of the
// activations, sum, sum0 and sum1 the sums of x alone:
//   kPlain       acc = fma(d * dx, dot, acc)
//   kMin         acc = fma(d * dx, dot, acc);                      acc = fma(m, dx * sum, acc)
//   kHalves      acc = fma(d * dx, s0 * dot0 + s1 * dot1, acc)
//   kHalvesMin   acc = fma(d * dx, s0 * dot0 + s1 * dot1, acc);    then
//                acc = fma(m * dx, t0 * sum0 + t1 * sum1, acc)
// Each float operation rounds once; everything else is integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quant/dequantize.h"

namespace dunlin {

enum class ScaleKind { kPlain, kMin, kHalves, kHalvesMin };

struct BlockScales {
  float d[16];
  float m[16];  // already negative where the format subtracts
  std::int16_t s[2][16];
  std::int16_t t[2][16];
};

namespace scales {

inline std::uint8_t u8(const std::byte* p, int i) { return static_cast<std::uint8_t>(p[i]); }
inline float f16_at(const std::byte* p, int i) {
  std::uint16_t bits;
  std::memcpy(&bits, p + 2 * i, 2);
  return f16_to_f32(bits);
}
inline void copy_f16(std::byte* out, int i, const std::byte* stored) {
  std::memcpy(out + 2 * i, stored, 2);
}

// Two six-bit values a row and block, for a pair of blocks in 48 bytes: the low nibbles of the
// first block (a, then b above), those of the second, and the upper two bits of all four.
inline constexpr int kSixBitPairBytes = 48;
inline void put_six_bits(std::byte* records, int block, int row, unsigned a, unsigned b) {
  std::byte* pair = records + block / 2 * kSixBitPairBytes;
  const int odd = block % 2;
  pair[16 * odd + row] = static_cast<std::byte>((a & 15) | (b & 15) << 4);
  pair[32 + row] |= static_cast<std::byte>((a >> 4 | (b >> 4) << 2) << (4 * odd));
}
inline void get_six_bits(const std::byte* records, int block, int row, int& a, int& b) {
  const std::byte* pair = records + block / 2 * kSixBitPairBytes;
  const int low = u8(pair, 16 * (block % 2) + row), high = u8(pair, 32 + row) >> (4 * (block % 2));
  a = (low & 15) | (high & 3) << 4;
  b = low >> 4 | (high >> 2 & 3) << 4;
}

}  // namespace scales

// A half-precision d a row and block, first in the stored block: Q4_0, Q5_0, Q8_0, IQ4_NL.
struct ScalesF16 {
  static constexpr ScaleKind kKind = ScaleKind::kPlain;
  static constexpr int kSpanBlocks = 1;
  static constexpr int kRecordBytes = 32;
  static void put(const std::byte* stored, int row, std::byte* record) {
    scales::copy_f16(record, row, stored);
  }
  static void get(const std::byte* record, int, BlockScales& out) {
    for (int r = 0; r < 16; ++r) out.d[r] = scales::f16_at(record, r);
  }
};

// d and m a row and block: Q4_1, Q5_1.
struct ScalesMinF16 {
  static constexpr ScaleKind kKind = ScaleKind::kMin;
  static constexpr int kSpanBlocks = 1;
  static constexpr int kRecordBytes = 64;
  static void put(const std::byte* stored, int row, std::byte* record) {
    scales::copy_f16(record, row, stored);
    scales::copy_f16(record + 32, row, stored + 2);
  }
  static void get(const std::byte* record, int, BlockScales& out) {
    for (int r = 0; r < 16; ++r) {
      out.d[r] = scales::f16_at(record, r);
      out.m[r] = scales::f16_at(record + 32, r);
    }
  }
};

// Q4_K, Q5_K: d and dmin a row and 256 columns, a six-bit factor of each a block of 32.
struct ScalesMinSixBit {
  static constexpr ScaleKind kKind = ScaleKind::kMin;
  static constexpr int kSpanBlocks = 8;
  static constexpr int kRecordBytes = 64 + 4 * scales::kSixBitPairBytes;
  static void put(const std::byte* stored, int row, std::byte* record) {
    scales::copy_f16(record, row, stored);
    scales::copy_f16(record + 32, row, stored + 2);
    const std::byte* six = stored + 4;
    for (int j = 0; j < 8; ++j) {
      unsigned scale, min;
      if (j < 4) {
        scale = scales::u8(six, j) & 63u;
        min = scales::u8(six, j + 4) & 63u;
      } else {
        scale = (scales::u8(six, j + 4) & 15u) | (scales::u8(six, j - 4) >> 6u) << 4;
        min = scales::u8(six, j + 4) >> 4u | (scales::u8(six, j) >> 6u) << 4;
      }
      scales::put_six_bits(record + 64, j, row, scale, min);
    }
  }
  static void get(const std::byte* record, int block, BlockScales& out) {
    for (int r = 0; r < 16; ++r) {
      int scale, min;
      scales::get_six_bits(record + 64, block, r, scale, min);
      out.d[r] = scales::f16_at(record, r) * static_cast<float>(scale);
      out.m[r] = -(scales::f16_at(record + 32, r) * static_cast<float>(min));
    }
  }
};

// Q6_K: d a row and 256 columns, a signed byte a half block.
struct ScalesHalvesI8 {
  static constexpr ScaleKind kKind = ScaleKind::kHalves;
  static constexpr int kSpanBlocks = 8;
  static constexpr int kRecordBytes = 32 + 256;
  static void put(const std::byte* stored, int row, std::byte* record) {
    scales::copy_f16(record, row, stored + 208);
    for (int half = 0; half < 16; ++half) record[32 + half * 16 + row] = stored[192 + half];
  }
  static void get(const std::byte* record, int block, BlockScales& out) {
    for (int r = 0; r < 16; ++r) {
      out.d[r] = scales::f16_at(record, r);
      for (int h = 0; h < 2; ++h) {
        out.s[h][r] = static_cast<std::int8_t>(record[32 + (2 * block + h) * 16 + r]);
      }
    }
  }
};

// Q3_K: d a row and 256 columns, six bits minus 32 a half block.
struct ScalesHalvesSixBit {
  static constexpr ScaleKind kKind = ScaleKind::kHalves;
  static constexpr int kSpanBlocks = 8;
  static constexpr int kRecordBytes = 32 + 4 * scales::kSixBitPairBytes;
  static void put(const std::byte* stored, int row, std::byte* record) {
    scales::copy_f16(record, row, stored + 108);
    const std::byte* six = stored + 96;
    const auto code = [&](int i) -> unsigned {
      const unsigned low = i < 8 ? scales::u8(six, i) & 15u : scales::u8(six, i - 8) >> 4u;
      return low | (scales::u8(six, 8 + i % 4) >> (2 * (i / 4)) & 3u) << 4;
    };
    for (int block = 0; block < 8; ++block) {
      scales::put_six_bits(record + 32, block, row, code(2 * block), code(2 * block + 1));
    }
  }
  static void get(const std::byte* record, int block, BlockScales& out) {
    for (int r = 0; r < 16; ++r) {
      int a, b;
      scales::get_six_bits(record + 32, block, r, a, b);
      out.d[r] = scales::f16_at(record, r);
      out.s[0][r] = static_cast<std::int16_t>(a - 32);
      out.s[1][r] = static_cast<std::int16_t>(b - 32);
    }
  }
};

// Q2_K: d and dmin a row and 256 columns, a nibble of each a half block.
struct ScalesHalvesMin {
  static constexpr ScaleKind kKind = ScaleKind::kHalvesMin;
  static constexpr int kSpanBlocks = 8;
  static constexpr int kRecordBytes = 64 + 256;
  static void put(const std::byte* stored, int row, std::byte* record) {
    scales::copy_f16(record, row, stored + 80);
    scales::copy_f16(record + 32, row, stored + 82);
    for (int half = 0; half < 16; ++half) record[64 + half * 16 + row] = stored[half];
  }
  static void get(const std::byte* record, int block, BlockScales& out) {
    for (int r = 0; r < 16; ++r) {
      out.d[r] = scales::f16_at(record, r);
      out.m[r] = -scales::f16_at(record + 32, r);
      for (int h = 0; h < 2; ++h) {
        const int pair = scales::u8(record, 64 + (2 * block + h) * 16 + r);
        out.s[h][r] = static_cast<std::int16_t>(pair & 15);
        out.t[h][r] = static_cast<std::int16_t>(pair >> 4);
      }
    }
  }
};

// IQ4_XS: d a row and 256 columns, six bits minus 32 a block: first the low nibbles of two blocks
// in a byte (4 x 16 bytes), then the upper two bits of four (2 x 16).
struct ScalesSixBit {
  static constexpr ScaleKind kKind = ScaleKind::kPlain;
  static constexpr int kSpanBlocks = 8;
  static constexpr int kRecordBytes = 32 + 64 + 32;
  static void put(const std::byte* stored, int row, std::byte* record) {
    scales::copy_f16(record, row, stored);
    const unsigned high = scales::u8(stored, 2) | scales::u8(stored, 3) << 8;
    for (int i = 0; i < 4; ++i) record[32 + 16 * i + row] = stored[4 + i];
    for (int i = 0; i < 2; ++i) record[96 + 16 * i + row] = static_cast<std::byte>(high >> (8 * i));
  }
  static void get(const std::byte* record, int block, BlockScales& out) {
    for (int r = 0; r < 16; ++r) {
      const int low = scales::u8(record, 32 + block / 2 * 16 + r) >> (4 * (block % 2)) & 15;
      const int high = scales::u8(record, 96 + block / 4 * 16 + r) >> (2 * (block % 4)) & 3;
      out.d[r] = scales::f16_at(record, r) * static_cast<float>((low | high << 4) - 32);
    }
  }
};

}  // namespace dunlin
