// How the codes of a panel block lie in memory: 16 rows x 32 columns, split into bit planes so that
// a vector of any width unpacks them with shifts and masks alone.
//
// A block is eight groups of four columns. The byte of group g, row r, column 4g + i has lane
// 4r + i, so that 64 consecutive lanes are one group: the operand of a four-way byte product, one
// 512-bit or two 256-bit vectors. Planes hold several groups in one lane:
//   nibbles  4 x 64 bytes: byte j holds group j (low) and group j + 4 (high)
//   pairs    2 x 64 bytes: byte p holds groups 4p .. 4p + 3, two bits each, ascending
//   bits     1 x 64 bytes: bit g belongs to group g
// Groups 0-3 and 4-7 are columns 0-15 and 16-31: the halves that formats with a scale per 16 need.
//
// Writing is by four rows: a row's four columns of a group are one 32-bit word, most stored formats
// hold such words already, and those of four rows are a vector of every machine. Reading, the plain
// form for the reference kernels, is by block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quant/iq4_values.h"

namespace dunlin {

inline constexpr int kPanelRows = 16;
inline constexpr int kBlockCols = 32;
inline constexpr int kBlockGroups = 8;
inline constexpr int kGroupLanes = 64;

struct CodeTile {
  alignas(64) std::uint8_t codes[kBlockGroups][kGroupLanes];
};

// The same place in the stored bytes of four neighbouring rows: packing takes four at a time.
struct FourRows {
  const std::byte* row[4];

  FourRows operator+(std::int64_t bytes) const {
    return {row[0] + bytes, row[1] + bytes, row[2] + bytes, row[3] + bytes};
  }
};

namespace planes {

// A word of each of the four rows.
using Words = std::uint32_t __attribute__((vector_size(16)));

inline std::uint32_t word(const std::byte* bytes) {
  std::uint32_t value;
  std::memcpy(&value, bytes, 4);
  return value;
}
inline Words four_words(const std::byte* bytes) {
  Words value;
  std::memcpy(&value, bytes, 16);
  return value;
}
// out [4] = words 0 to 3 of the 16 bytes.
inline void load_words(const FourRows& bytes, Words* out) {
  const Words a = four_words(bytes.row[0]), b = four_words(bytes.row[1]);
  const Words c = four_words(bytes.row[2]), d = four_words(bytes.row[3]);
  const Words ab01 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Words ab23 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Words cd01 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Words cd23 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  out[0] = __builtin_shufflevector(ab01, cd01, 0, 1, 4, 5);
  out[1] = __builtin_shufflevector(ab01, cd01, 2, 3, 6, 7);
  out[2] = __builtin_shufflevector(ab23, cd23, 0, 1, 4, 5);
  out[3] = __builtin_shufflevector(ab23, cd23, 2, 3, 6, 7);
}
// out [8] = the words of 32 bytes.
inline void load_eight_words(const FourRows& bytes, Words* out) {
  load_words(bytes, out);
  load_words(bytes + 16, out + 4);
}
// Lanes of rows `row` to `row + 3` in the idx-th 64 bytes of a plane.
inline void put_words(std::byte* plane, int idx, int row, Words value) {
  std::memcpy(plane + idx * kGroupLanes + 4 * row, &value, 16);
}

// Nibbles as they are stored: byte i holds columns i and i + 16.
inline void put_nibbles(const FourRows& stored, int row, std::byte* plane) {
  Words words[4];
  load_words(stored, words);
  for (int j = 0; j < 4; ++j) put_words(plane, j, row, words[j]);
}
// Nibbles `shift / 4` of 32 bytes, one a column.
inline void put_nibbles(const FourRows& bytes, int shift, int row, std::byte* plane) {
  Words words[8];
  load_eight_words(bytes, words);
  for (int j = 0; j < 4; ++j) {
    const Words low = words[j] >> shift & 0x0f0f0f0fu;
    const Words high = words[j + 4] >> shift & 0x0f0f0f0fu;
    put_words(plane, j, row, low | high << 4);
  }
}
// Two bits from `shift` of 32 bytes, one a column.
inline void put_pairs(const FourRows& bytes, int shift, int row, std::byte* plane) {
  Words words[8];
  load_eight_words(bytes, words);
  for (int p = 0; p < 2; ++p) {
    Words lanes = {};
    for (int j = 0; j < 4; ++j) lanes |= (words[4 * p + j] >> shift & 0x03030303u) << (2 * j);
    put_words(plane, p, row, lanes);
  }
}
// Bit `shift` of 32 bytes, one a column.
inline void put_bits(const FourRows& bytes, int shift, int row, std::byte* plane) {
  Words words[8];
  load_eight_words(bytes, words);
  Words lanes = {};
  for (int g = 0; g < kBlockGroups; ++g) lanes |= (words[g] >> shift & 0x01010101u) << g;
  put_words(plane, 0, row, lanes);
}
// Bit k of the four bytes belongs to column k = 4g + i and goes to bit g of lane i.
inline void put_mask(const FourRows& bytes, int row, std::byte* plane) {
  const Words mask = {word(bytes.row[0]), word(bytes.row[1]), word(bytes.row[2]),
                      word(bytes.row[3])};
  Words lanes = {};
  for (int i = 0; i < 4; ++i) {
    Words bits = mask >> i & 0x11111111u;  // gathers every fourth bit
    bits = (bits | bits >> 3) & 0x03030303u;
    bits = (bits | bits >> 6) & 0x000f000fu;
    bits = (bits | bits >> 12) & 0xffu;
    lanes |= bits << (8 * i);
  }
  put_words(plane, 0, row, lanes);
}
inline void put_bytes(const FourRows& bytes, int row, std::byte* plane) {
  Words words[8];
  load_eight_words(bytes, words);
  for (int g = 0; g < kBlockGroups; ++g) put_words(plane, g, row, words[g]);
}

inline void load_nibbles(const std::byte* in, CodeTile& tile) {
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < kGroupLanes; ++i) {
      const auto byte = static_cast<std::uint8_t>(in[j * kGroupLanes + i]);
      tile.codes[j][i] = byte & 15;
      tile.codes[j + 4][i] = byte >> 4;
    }
  }
}

// Sets bits `shift` and `shift + 1` of each code.
template <int shift>
void add_pairs(const std::byte* in, CodeTile& tile) {
  for (int p = 0; p < 2; ++p) {
    for (int j = 0; j < 4; ++j) {
      for (int i = 0; i < kGroupLanes; ++i) {
        const auto byte = static_cast<unsigned>(in[p * kGroupLanes + i]);
        tile.codes[4 * p + j][i] |= static_cast<std::uint8_t>((byte >> (2 * j) & 3u) << shift);
      }
    }
  }
}

// Sets bit `shift` of each code.
template <int shift>
void add_bits(const std::byte* in, CodeTile& tile) {
  for (int g = 0; g < kBlockGroups; ++g) {
    for (int i = 0; i < kGroupLanes; ++i) {
      const auto byte = static_cast<unsigned>(in[i]);
      tile.codes[g][i] |= static_cast<std::uint8_t>((byte >> g & 1u) << shift);
    }
  }
}

}  // namespace planes

struct Bits2 {
  static constexpr int kBlockBytes = 128;
  static void load(const std::byte* in, CodeTile& tile) {
    std::memset(tile.codes, 0, sizeof(tile.codes));
    planes::add_pairs<0>(in, tile);
  }
};

struct Bits3 {
  static constexpr int kBlockBytes = 192;
  static void load(const std::byte* in, CodeTile& tile) {
    Bits2::load(in, tile);
    planes::add_bits<2>(in + 128, tile);
  }
};

struct Bits4 {
  static constexpr int kBlockBytes = 256;
  static void load(const std::byte* in, CodeTile& tile) { planes::load_nibbles(in, tile); }
};

struct Bits5 {
  static constexpr int kBlockBytes = 320;
  static void load(const std::byte* in, CodeTile& tile) {
    planes::load_nibbles(in, tile);
    planes::add_bits<4>(in + 256, tile);
  }
};

struct Bits6 {
  static constexpr int kBlockBytes = 384;
  static void load(const std::byte* in, CodeTile& tile) {
    planes::load_nibbles(in, tile);
    planes::add_pairs<4>(in + 256, tile);
  }
};

// Signed bytes as they are.
struct Bits8 {
  static constexpr int kBlockBytes = 512;
  static void load(const std::byte* in, CodeTile& tile) {
    std::memcpy(tile.codes, in, sizeof(tile.codes));
  }
};

// Four-bit indices into the table of IQ4_NL and IQ4_XS (signed bytes).
struct BitsIq4 {
  static constexpr int kBlockBytes = 256;
  static void load(const std::byte* in, CodeTile& tile) {
    planes::load_nibbles(in, tile);
    for (auto& group : tile.codes) {
      for (std::uint8_t& code : group) code = static_cast<std::uint8_t>(kIq4Values[code]);
    }
  }
};

}  // namespace dunlin
