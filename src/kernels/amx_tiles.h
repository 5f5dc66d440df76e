// The tile instructions of AMX-INT8 (Intel SDM vol. 2) that the kernels use, one function each; the
// tile's number is a template argument. Over DUNLIN_EMULATE_AMX plain loops with the same results,
// for machines without them. Included by per-ISA files only.
//
// A tile is 16 rows of 64 bytes, or the part of them that the configuration names. Tiles belong to
// the thread: load_config before the first use, release_tiles after the last, so that the system
// need not save 8 KiB at each switch.
#pragma once

#include <cstdint>

#include "kernels/inline.h"

namespace dunlin {
namespace {

constexpr int kNumTiles = 8;

struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t num_rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

#ifdef DUNLIN_EMULATE_AMX

struct EmulatedTiles {
  TileConfig config;
  alignas(64) std::int8_t bytes[kNumTiles][16][64];
};
thread_local EmulatedTiles emulated;

inline void load_config(const TileConfig& config) { emulated.config = config; }
inline void release_tiles() { emulated.config = {}; }

template <int tile>
void clear_tile() {
  __builtin_memset(emulated.bytes[tile], 0, sizeof(emulated.bytes[tile]));
}
template <int tile>
void load_tile(const void* from, std::int64_t stride_bytes) {
  clear_tile<tile>();
  for (int row = 0; row < emulated.config.num_rows[tile]; ++row) {
    __builtin_memcpy(emulated.bytes[tile][row], static_cast<const char*>(from) + row * stride_bytes,
                     emulated.config.row_bytes[tile]);
  }
}
template <int tile>
void store_tile(void* to, std::int64_t stride_bytes) {
  for (int row = 0; row < emulated.config.num_rows[tile]; ++row) {
    __builtin_memcpy(static_cast<char*>(to) + row * stride_bytes, emulated.bytes[tile][row],
                     emulated.config.row_bytes[tile]);
  }
}
template <int sum, int a, int b>
void multiply_tiles() {
  for (int m = 0; m < emulated.config.num_rows[sum]; ++m) {
    for (int n = 0; n < emulated.config.row_bytes[sum] / 4; ++n) {
      std::int32_t total;
      __builtin_memcpy(&total, &emulated.bytes[sum][m][4 * n], 4);
      for (int k = 0; k < emulated.config.row_bytes[a]; ++k) {
        total += emulated.bytes[a][m][k] * emulated.bytes[b][k / 4][4 * n + k % 4];
      }
      __builtin_memcpy(&emulated.bytes[sum][m][4 * n], &total, 4);
    }
  }
}

#else

// Own assembly rather than <immintrin.h>: GCC's macros take literal tile numbers only.
DUNLIN_INLINE void load_config(const TileConfig& config) {
  asm volatile("ldtilecfg %0" ::"m"(config));
}
DUNLIN_INLINE void release_tiles() { asm volatile("tilerelease"); }

template <int tile>
DUNLIN_INLINE void clear_tile() {
  asm volatile("tilezero %%tmm%c0" ::"n"(tile));
}
template <int tile>
DUNLIN_INLINE void load_tile(const void* from, std::int64_t stride_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride_bytes), "n"(tile)
               : "memory");
}
template <int tile>
DUNLIN_INLINE void store_tile(void* to, std::int64_t stride_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride_bytes), "n"(tile) : "memory");
}
// sum [m][n] += the products over k of a's signed bytes [m][k] and b's [k / 4][4 n + k % 4].
template <int sum, int a, int b>
DUNLIN_INLINE void multiply_tiles() {
  asm volatile("tdpbssd %%tmm%c0, %%tmm%c1, %%tmm%c2" ::"n"(b), "n"(a), "n"(sum));
}

#endif

}  // namespace
}  // namespace dunlin
