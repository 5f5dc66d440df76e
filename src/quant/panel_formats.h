// The block formats as types. A format says how the codes of 32 columns stand in the stored block
// and which plane layout and scale record its panels use; everything else (packing, reference and
// vector kernels) is composed from those. To add one: a struct here, its name in the list below.
//
// A panel is [scale records of all blocks][plane blocks of all blocks], both padded to 64 bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "quant/panel_bits.h"
#include "quant/panel_scales.h"
#include "tensor/dtype.h"

namespace dunlin {

// codes(stored, sub, out): the codes of columns 32 sub .. 32 sub + 31 of one stored block.
// kZeroPoint: what is subtracted from a code; kSigned: codes are signed bytes.
namespace formats {

inline void nibble_halves(const std::byte* qs, std::uint8_t* out) {
  for (int i = 0; i < 16; ++i) {
    const auto byte = static_cast<std::uint8_t>(qs[i]);
    out[i] = byte & 15;
    out[i + 16] = byte >> 4;
  }
}

inline void fifth_bits(const std::byte* qh, std::uint8_t* out) {
  std::uint32_t bits;
  std::memcpy(&bits, qh, 4);
  for (int i = 0; i < 32; ++i) out[i] |= static_cast<std::uint8_t>((bits >> i & 1u) << 4);
}

// Sub-block 2c + h of a K format: nibble h of 32 bytes.
inline void nibble_chunk(const std::byte* qs, int sub, std::uint8_t* out) {
  const std::byte* chunk = qs + 32 * (sub / 2);
  const int shift = 4 * (sub % 2);
  for (int i = 0; i < 32; ++i) {
    out[i] = static_cast<std::uint8_t>(static_cast<unsigned>(chunk[i]) >> shift & 15u);
  }
}

// Sub-block 4n + j of a K format: two bits j of 32 bytes.
inline void pair_chunk(const std::byte* qs, int sub, std::uint8_t* out) {
  const std::byte* chunk = qs + 32 * (sub / 4);
  const int shift = 2 * (sub % 4);
  for (int i = 0; i < 32; ++i) {
    out[i] = static_cast<std::uint8_t>(static_cast<unsigned>(chunk[i]) >> shift & 3u);
  }
}

inline void add_bit(const std::byte* bytes, int bit, int to, std::uint8_t* out) {
  for (int i = 0; i < 32; ++i) {
    const unsigned value = static_cast<unsigned>(bytes[i]) >> bit & 1u;
    out[i] |= static_cast<std::uint8_t>(value << to);
  }
}

struct Q4_0 {
  static constexpr DType kDType = DType::kQ4_0;
  using Bits = Bits4;
  using Scales = ScalesF16;
  static constexpr int kZeroPoint = 8;
  static constexpr bool kSigned = false;
  static void codes(const std::byte* stored, int, std::uint8_t* out) {
    nibble_halves(stored + 2, out);
  }
};

struct Q4_1 {
  static constexpr DType kDType = DType::kQ4_1;
  using Bits = Bits4;
  using Scales = ScalesMinF16;
  static constexpr int kZeroPoint = 0;
  static constexpr bool kSigned = false;
  static void codes(const std::byte* stored, int, std::uint8_t* out) {
    nibble_halves(stored + 4, out);
  }
};

struct Q5_0 {
  static constexpr DType kDType = DType::kQ5_0;
  using Bits = Bits5;
  using Scales = ScalesF16;
  static constexpr int kZeroPoint = 16;
  static constexpr bool kSigned = false;
  static void codes(const std::byte* stored, int, std::uint8_t* out) {
    nibble_halves(stored + 6, out);
    fifth_bits(stored + 2, out);
  }
};

struct Q5_1 {
  static constexpr DType kDType = DType::kQ5_1;
  using Bits = Bits5;
  using Scales = ScalesMinF16;
  static constexpr int kZeroPoint = 0;
  static constexpr bool kSigned = false;
  static void codes(const std::byte* stored, int, std::uint8_t* out) {
    nibble_halves(stored + 8, out);
    fifth_bits(stored + 4, out);
  }
};

struct Q8_0 {
  static constexpr DType kDType = DType::kQ8_0;
  using Bits = Bits8;
  using Scales = ScalesF16;
  static constexpr int kZeroPoint = 0;
  static constexpr bool kSigned = true;
  static void codes(const std::byte* stored, int, std::uint8_t* out) {
    std::memcpy(out, stored + 2, 32);
  }
};

struct Q2_K {
  static constexpr DType kDType = DType::kQ2_K;
  using Bits = Bits2;
  using Scales = ScalesHalvesMin;
  static constexpr int kZeroPoint = 0;
  static constexpr bool kSigned = false;
  static void codes(const std::byte* stored, int sub, std::uint8_t* out) {
    pair_chunk(stored + 16, sub, out);
  }
};

struct Q3_K {
  static constexpr DType kDType = DType::kQ3_K;
  using Bits = Bits3;
  using Scales = ScalesHalvesSixBit;
  static constexpr int kZeroPoint = 4;
  static constexpr bool kSigned = false;
  static void codes(const std::byte* stored, int sub, std::uint8_t* out) {
    pair_chunk(stored + 32, sub, out);
    add_bit(stored, sub, 2, out);
  }
};

struct Q4_K {
  static constexpr DType kDType = DType::kQ4_K;
  using Bits = Bits4;
  using Scales = ScalesMinSixBit;
  static constexpr int kZeroPoint = 0;
  static constexpr bool kSigned = false;
  static void codes(const std::byte* stored, int sub, std::uint8_t* out) {
    nibble_chunk(stored + 16, sub, out);
  }
};

struct Q5_K {
  static constexpr DType kDType = DType::kQ5_K;
  using Bits = Bits5;
  using Scales = ScalesMinSixBit;
  static constexpr int kZeroPoint = 0;
  static constexpr bool kSigned = false;
  static void codes(const std::byte* stored, int sub, std::uint8_t* out) {
    nibble_chunk(stored + 48, sub, out);
    add_bit(stored + 16, sub, 4, out);
  }
};

struct Q6_K {
  static constexpr DType kDType = DType::kQ6_K;
  using Bits = Bits6;
  using Scales = ScalesHalvesI8;
  static constexpr int kZeroPoint = 32;
  static constexpr bool kSigned = false;
  static void codes(const std::byte* stored, int sub, std::uint8_t* out) {
    // Sub-block 4n + j: nibble j / 2 of the bytes at 64n + 32 (j % 2), two bits j of the high ones.
    const int n = sub / 4, j = sub % 4;
    std::uint8_t high[32];
    pair_chunk(stored + 128, sub, high);
    const std::byte* low = stored + 64 * n + 32 * (j % 2);
    const int shift = 4 * (j / 2);
    for (int i = 0; i < 32; ++i) {
      const unsigned nibble = static_cast<unsigned>(low[i]) >> shift & 15u;
      out[i] = static_cast<std::uint8_t>(nibble | high[i] << 4);
    }
  }
};

struct IQ4_NL {
  static constexpr DType kDType = DType::kIQ4_NL;
  using Bits = BitsIq4;
  using Scales = ScalesF16;
  static constexpr int kZeroPoint = 0;
  static constexpr bool kSigned = true;
  static void codes(const std::byte* stored, int, std::uint8_t* out) {
    nibble_halves(stored + 2, out);
  }
};

struct IQ4_XS {
  static constexpr DType kDType = DType::kIQ4_XS;
  using Bits = BitsIq4;
  using Scales = ScalesSixBit;
  static constexpr int kZeroPoint = 0;
  static constexpr bool kSigned = true;
  static void codes(const std::byte* stored, int sub, std::uint8_t* out) {
    nibble_halves(stored + 8 + 16 * sub, out);
  }
};

}  // namespace formats

// X(name) once a format: dispatch tables, packing and tests are generated from this list.
#define DUNLIN_PANEL_FORMATS(X) \
  X(Q4_0)                       \
  X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(Q2_K) X(Q3_K) X(Q4_K) X(Q5_K) X(Q6_K) X(IQ4_NL) X(IQ4_XS)

// Where a panel's sections begin.
template <typename Format>
struct PanelShape {
  static constexpr std::int64_t scales_bytes(std::int64_t num_blocks) {
    const std::int64_t bytes =
        num_blocks / Format::Scales::kSpanBlocks * Format::Scales::kRecordBytes;
    return (bytes + 63) / 64 * 64;
  }
  static constexpr std::int64_t panel_bytes(std::int64_t num_blocks) {
    return scales_bytes(num_blocks) + num_blocks * Format::Bits::kBlockBytes;
  }
};

}  // namespace dunlin
