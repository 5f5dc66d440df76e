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
// The functions here are the plain form, for packing and for the reference kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dunlin {

inline constexpr int kPanelRows = 16;
inline constexpr int kBlockCols = 32;
inline constexpr int kBlockGroups = 8;
inline constexpr int kGroupLanes = 64;

struct CodeTile {
  alignas(64) std::uint8_t codes[kBlockGroups][kGroupLanes];
};

namespace planes {

inline void store_nibbles(const CodeTile& tile, std::byte* out) {
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < kGroupLanes; ++i) {
      const int low = tile.codes[j][i] & 15, high = tile.codes[j + 4][i] & 15;
      out[j * kGroupLanes + i] = static_cast<std::byte>(low | high << 4);
    }
  }
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

// Bits `shift` and `shift + 1` of each code.
template <int shift>
void store_pairs(const CodeTile& tile, std::byte* out) {
  for (int p = 0; p < 2; ++p) {
    for (int i = 0; i < kGroupLanes; ++i) {
      unsigned byte = 0;
      for (int j = 0; j < 4; ++j) byte |= (tile.codes[4 * p + j][i] >> shift & 3u) << (2 * j);
      out[p * kGroupLanes + i] = static_cast<std::byte>(byte);
    }
  }
}

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

// Bit `shift` of each code.
template <int shift>
void store_bits(const CodeTile& tile, std::byte* out) {
  for (int i = 0; i < kGroupLanes; ++i) {
    unsigned byte = 0;
    for (int g = 0; g < kBlockGroups; ++g) byte |= (tile.codes[g][i] >> shift & 1u) << g;
    out[i] = static_cast<std::byte>(byte);
  }
}

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
  static void store(const CodeTile& tile, std::byte* out) { planes::store_pairs<0>(tile, out); }
  static void load(const std::byte* in, CodeTile& tile) {
    std::memset(tile.codes, 0, sizeof(tile.codes));
    planes::add_pairs<0>(in, tile);
  }
};

struct Bits3 {
  static constexpr int kBlockBytes = 192;
  static void store(const CodeTile& tile, std::byte* out) {
    planes::store_pairs<0>(tile, out);
    planes::store_bits<2>(tile, out + 128);
  }
  static void load(const std::byte* in, CodeTile& tile) {
    std::memset(tile.codes, 0, sizeof(tile.codes));
    planes::add_pairs<0>(in, tile);
    planes::add_bits<2>(in + 128, tile);
  }
};

struct Bits4 {
  static constexpr int kBlockBytes = 256;
  static void store(const CodeTile& tile, std::byte* out) { planes::store_nibbles(tile, out); }
  static void load(const std::byte* in, CodeTile& tile) { planes::load_nibbles(in, tile); }
};

struct Bits5 {
  static constexpr int kBlockBytes = 320;
  static void store(const CodeTile& tile, std::byte* out) {
    planes::store_nibbles(tile, out);
    planes::store_bits<4>(tile, out + 256);
  }
  static void load(const std::byte* in, CodeTile& tile) {
    planes::load_nibbles(in, tile);
    planes::add_bits<4>(in + 256, tile);
  }
};

struct Bits6 {
  static constexpr int kBlockBytes = 384;
  static void store(const CodeTile& tile, std::byte* out) {
    planes::store_nibbles(tile, out);
    planes::store_pairs<4>(tile, out + 256);
  }
  static void load(const std::byte* in, CodeTile& tile) {
    planes::load_nibbles(in, tile);
    planes::add_pairs<4>(in + 256, tile);
  }
};

// Signed bytes as they are.
struct Bits8 {
  static constexpr int kBlockBytes = 512;
  static void store(const CodeTile& tile, std::byte* out) {
    std::memcpy(out, tile.codes, sizeof(tile.codes));
  }
  static void load(const std::byte* in, CodeTile& tile) {
    std::memcpy(tile.codes, in, sizeof(tile.codes));
  }
};

// Four-bit indices into the table of IQ4_NL and IQ4_XS (signed bytes).
struct BitsIq4 {
  static constexpr int kBlockBytes = 256;
  static constexpr std::int8_t kValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                              1,    13,   25,  38,  53,  69,  89,  113};
  static void store(const CodeTile& tile, std::byte* out) { planes::store_nibbles(tile, out); }
  static void load(const std::byte* in, CodeTile& tile) {
    planes::load_nibbles(in, tile);
    for (auto& group : tile.codes) {
      for (std::uint8_t& code : group) code = static_cast<std::uint8_t>(kValues[code]);
    }
  }
};

}  // namespace dunlin
