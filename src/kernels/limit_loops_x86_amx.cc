// The loops of the AMX kernels: tile products over blocks of 32 columns, for signed codes both
// kinds. Reading and floats are AVX-512's.
#include "kernels/amx_tiles.h"
#include "kernels/limit_loops.h"

namespace dunlin {
namespace {

std::uint64_t read(const std::byte* data, std::int64_t n) {
  return avx512_limit_loops.read(data, n);
}
std::int64_t floats(std::int64_t rounds, std::uint64_t* sink) {
  return avx512_limit_loops.floats(rounds, sink);
}

// Four sums over two tiles of tokens and two of weights.
constexpr TileConfig loop_config() {
  TileConfig config;
  for (int tile = 0; tile < kNumTiles; ++tile) {
    config.row_bytes[tile] = tile == 4 || tile == 5 ? 32 : 64;
    config.num_rows[tile] = tile >= 6 ? 8 : 16;
  }
  return config;
}

std::int64_t int8_products(std::int64_t rounds, std::uint64_t* sink) {
  static constexpr TileConfig kConfig = loop_config();
  alignas(64) std::int32_t ones[16][16];
  for (auto& row : ones) {
    for (std::int32_t& four : row) four = 0x01010101;
  }
  load_config(kConfig);
  clear_tile<0>();
  clear_tile<1>();
  clear_tile<2>();
  clear_tile<3>();
  load_tile<4>(ones, 64);
  load_tile<5>(ones, 64);
  load_tile<6>(ones, 64);
  load_tile<7>(ones, 64);
  for (std::int64_t round = 0; round < rounds; ++round) {
    multiply_tiles<0, 4, 6>();
    multiply_tiles<1, 4, 7>();
    multiply_tiles<2, 5, 6>();
    multiply_tiles<3, 5, 7>();
  }
  store_tile<3>(ones, 64);
  release_tiles();
  *sink += static_cast<std::uint64_t>(ones[0][0]);
  return rounds * 4 * 16 * 16 * 32 * 2;
}

}  // namespace

const LimitLoops amx_limit_loops = {read, int8_products, int8_products, floats};

}  // namespace dunlin
