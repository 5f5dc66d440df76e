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

// put(stored, sub, row, block): the codes of columns 32 sub .. 32 sub + 31 of the stored blocks of
// rows `row` to `row + 3`, into a plane block. kZeroPoint: what is subtracted from a code; kSigned:
// codes are signed bytes.
namespace formats {

struct Q4_0 {
  static constexpr DType kDType = DType::kQ4_0;
  using Bits = Bits4;
  using Scales = ScalesF16;
  static constexpr int kZeroPoint = 8;
  static constexpr bool kSigned = false;
  static void put(const FourRows& stored, int, int row, std::byte* block) {
    planes::put_nibbles(stored + 2, row, block);
  }
};

struct Q4_1 {
  static constexpr DType kDType = DType::kQ4_1;
  using Bits = Bits4;
  using Scales = ScalesMinF16;
  static constexpr int kZeroPoint = 0;
  static constexpr bool kSigned = false;
  static void put(const FourRows& stored, int, int row, std::byte* block) {
    planes::put_nibbles(stored + 4, row, block);
  }
};

struct Q5_0 {
  static constexpr DType kDType = DType::kQ5_0;
  using Bits = Bits5;
  using Scales = ScalesF16;
  static constexpr int kZeroPoint = 16;
  static constexpr bool kSigned = false;
  static void put(const FourRows& stored, int, int row, std::byte* block) {
    planes::put_nibbles(stored + 6, row, block);
    planes::put_mask(stored + 2, row, block + 256);
  }
};

struct Q5_1 {
  static constexpr DType kDType = DType::kQ5_1;
  using Bits = Bits5;
  using Scales = ScalesMinF16;
  static constexpr int kZeroPoint = 0;
  static constexpr bool kSigned = false;
  static void put(const FourRows& stored, int, int row, std::byte* block) {
    planes::put_nibbles(stored + 8, row, block);
    planes::put_mask(stored + 4, row, block + 256);
  }
};

struct Q8_0 {
  static constexpr DType kDType = DType::kQ8_0;
  using Bits = Bits8;
  using Scales = ScalesF16;
  static constexpr int kZeroPoint = 0;
  static constexpr bool kSigned = true;
  static void put(const FourRows& stored, int, int row, std::byte* block) {
    planes::put_bytes(stored + 2, row, block);
  }
};

struct Q2_K {
  static constexpr DType kDType = DType::kQ2_K;
  using Bits = Bits2;
  using Scales = ScalesHalvesMin;
  static constexpr int kZeroPoint = 0;
  static constexpr bool kSigned = false;
  static void put(const FourRows& stored, int sub, int row, std::byte* block) {
    planes::put_pairs(stored + 16 + 32 * (sub / 4), 2 * (sub % 4), row, block);
  }
};

struct Q3_K {
  static constexpr DType kDType = DType::kQ3_K;
  using Bits = Bits3;
  using Scales = ScalesHalvesSixBit;
  static constexpr int kZeroPoint = 4;
  static constexpr bool kSigned = false;
  static void put(const FourRows& stored, int sub, int row, std::byte* block) {
    planes::put_pairs(stored + 32 + 32 * (sub / 4), 2 * (sub % 4), row, block);
    planes::put_bits(stored, sub, row, block + 128);
  }
};

struct Q4_K {
  static constexpr DType kDType = DType::kQ4_K;
  using Bits = Bits4;
  using Scales = ScalesMinSixBit;
  static constexpr int kZeroPoint = 0;
  static constexpr bool kSigned = false;
  static void put(const FourRows& stored, int sub, int row, std::byte* block) {
    planes::put_nibbles(stored + 16 + 32 * (sub / 2), 4 * (sub % 2), row, block);
  }
};

struct Q5_K {
  static constexpr DType kDType = DType::kQ5_K;
  using Bits = Bits5;
  using Scales = ScalesMinSixBit;
  static constexpr int kZeroPoint = 0;
  static constexpr bool kSigned = false;
  static void put(const FourRows& stored, int sub, int row, std::byte* block) {
    planes::put_nibbles(stored + 48 + 32 * (sub / 2), 4 * (sub % 2), row, block);
    planes::put_bits(stored + 16, sub, row, block + 256);
  }
};

struct Q6_K {
  static constexpr DType kDType = DType::kQ6_K;
  using Bits = Bits6;
  using Scales = ScalesHalvesI8;
  static constexpr int kZeroPoint = 32;
  static constexpr bool kSigned = false;
  static void put(const FourRows& stored, int sub, int row, std::byte* block) {
    const int n = sub / 4, j = sub % 4;
    planes::put_nibbles(stored + 64 * n + 32 * (j % 2), 4 * (j / 2), row, block);
    planes::put_pairs(stored + 128 + 32 * n, 2 * j, row, block + 256);
  }
};

struct IQ4_NL {
  static constexpr DType kDType = DType::kIQ4_NL;
  using Bits = BitsIq4;
  using Scales = ScalesF16;
  static constexpr int kZeroPoint = 0;
  static constexpr bool kSigned = true;
  static void put(const FourRows& stored, int, int row, std::byte* block) {
    planes::put_nibbles(stored + 2, row, block);
  }
};

struct IQ4_XS {
  static constexpr DType kDType = DType::kIQ4_XS;
  using Bits = BitsIq4;
  using Scales = ScalesSixBit;
  static constexpr int kZeroPoint = 0;
  static constexpr bool kSigned = true;
  static void put(const FourRows& stored, int sub, int row, std::byte* block) {
    planes::put_nibbles(stored + 8 + 16 * sub, row, block);
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
