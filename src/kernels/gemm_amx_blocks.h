// The AMX micro-kernel: 16 tokens x 16 rows over the blocks of a strip. Included by gemm_x86_amx.cc
// only.
//
// A block of an unpacked strip, eight groups of four columns with 16 rows side by side, is what the
// instruction wants as its second operand; the first are the codes of 16 tokens, read where they
// lie. The integers come out as in every other kernel, and so do the bits of what follows.
#pragma once

#include "kernels/amx_tiles.h"
#include "kernels/gemm_avx512_tiles.h"

namespace dunlin {
namespace {

// Two sets of tiles, so that one block's products are under way while the other's are scaled: sums,
// tokens and weights are tiles 3 set, 3 set + 1 and 3 set + 2. A format with a factor a half block
// multiplies halves, of 16 columns.
template <bool halves>
constexpr TileConfig tile_config() {
  TileConfig config;
  constexpr int kCols = halves ? 16 : 32;
  for (int set = 0; set < 2; ++set) {
    config.num_rows[3 * set] = config.num_rows[3 * set + 1] = SpacedTokens::kCount;
    config.row_bytes[3 * set] = config.row_bytes[3 * set + 2] = 64;
    config.row_bytes[3 * set + 1] = kCols;
    config.num_rows[3 * set + 2] = kCols / 4;
  }
  return config;
}

using Integers = std::int32_t[SpacedTokens::kCount][16];

template <int set>
DUNLIN_INLINE void multiply(const std::byte* tokens, std::int64_t stride_bytes,
                            const std::byte* weights, Integers& out) {
  clear_tile<3 * set>();
  load_tile<3 * set + 1>(tokens, stride_bytes);
  load_tile<3 * set + 2>(weights, 64);
  multiply_tiles<3 * set, 3 * set + 1, 3 * set + 2>();
  store_tile<3 * set>(out, 64);
}

DUNLIN_INLINE __m512 floats_of(const std::int32_t* integers) {
  return to_floats(load512(integers));
}

// The integers of a block of 16 tokens, and what they add to the sums.
template <typename Format, bool halves>
struct BlockStep {
  Integers dots;

  template <int set>
  DUNLIN_INLINE void start(const SpacedTokens& x, const std::byte* codes) {
    multiply<set>(x.first(), x.stride_bytes, codes, dots);
  }
  DUNLIN_INLINE void finish(const StripScales& scales, int block, const SpacedTokens& x,
                            __m512 (&acc)[SpacedTokens::kCount]) const {
#pragma GCC unroll 16
    for (int t = 0; t < SpacedTokens::kCount; ++t) {
      acc[t] = add_block<Format::Scales::kKind>(acc[t], floats_of(dots[t]), scales, block, x[t]);
    }
  }
};

template <typename Format>
struct BlockStep<Format, true> {
  Integers dots[2];

  template <int set>
  DUNLIN_INLINE void start(const SpacedTokens& x, const std::byte* codes) {
    multiply<set>(x.first(), x.stride_bytes, codes, dots[0]);
    multiply<set>(x.first() + 16, x.stride_bytes, codes + 256, dots[1]);
  }
  DUNLIN_INLINE void finish(const StripScales& scales, int block, const SpacedTokens& x,
                            __m512 (&acc)[SpacedTokens::kCount]) const {
    const HalfFactors factors(scales.s[block]);
#pragma GCC unroll 16
    for (int t = 0; t < SpacedTokens::kCount; ++t) {
      const __m512 dot = factors.sum(load512(dots[0][t]), load512(dots[1][t]));
      acc[t] = add_block<Format::Scales::kKind>(acc[t], dot, scales, block, x[t]);
    }
  }
};

template <typename Format>
using Step = BlockStep<Format, kHasHalves<Format>>;

// acc [16 tokens][16 rows] += the tile over the strip. codes: signed, 512 bytes a block.
template <typename Format>
__attribute__((noinline)) void run_token_tile(const std::byte* codes, int num_blocks,
                                              const StripScales& scales, SpacedTokens x,
                                              float (*acc)[16]) {
  constexpr int kBytes = UnpackedCodes::kBlockBytes;
  __m512 sums[SpacedTokens::kCount];
#pragma GCC unroll 16
  for (int t = 0; t < SpacedTokens::kCount; ++t) sums[t] = _mm512_load_ps(acc[t]);
  alignas(64) Step<Format> even, odd;
  even.template start<0>(x, codes);
  int block = 0;
  for (; block + 2 <= num_blocks; block += 2) {
    SpacedTokens second = x, third = x;
    second.advance();
    third.advance();
    third.advance();
    odd.template start<1>(second, codes + kBytes);
    even.finish(scales, block, x, sums);
    codes += 2 * kBytes;
    if (block + 2 < num_blocks) even.template start<0>(third, codes);
    odd.finish(scales, block + 1, second, sums);
    x = third;
  }
  if (block < num_blocks) even.finish(scales, block, x, sums);
#pragma GCC unroll 16
  for (int t = 0; t < SpacedTokens::kCount; ++t) _mm512_store_ps(acc[t], sums[t]);
}

}  // namespace
}  // namespace dunlin
