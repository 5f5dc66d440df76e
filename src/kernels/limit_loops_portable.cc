// The loops as the compiler makes them of plain code.
#include "kernels/limit_loops.h"

namespace dunlin {
namespace {

constexpr int kChains = 8, kLanes = 16;

std::uint64_t read(const std::byte* data, std::int64_t n) {
  std::uint64_t sums[4] = {};
  const auto* words = reinterpret_cast<const std::uint64_t*>(data);
  for (std::int64_t i = 0; i < n / 8; i += 4) {
    for (int lane = 0; lane < 4; ++lane) sums[lane] += words[i + lane];
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

template <typename Weight>
std::int64_t int8_products(std::int64_t rounds, std::uint64_t* sink) {
  std::int32_t sums[kChains][kLanes] = {};
  volatile int seed = 3;
  for (std::int64_t i = 0; i < rounds; ++i) {
    const auto w = static_cast<Weight>(seed);  // read anew: no round is the one before
    for (int chain = 0; chain < kChains; ++chain) {
      for (int lane = 0; lane < kLanes; ++lane) {
        sums[chain][lane] += w * static_cast<std::int8_t>(chain + lane);
      }
    }
  }
  for (const auto& chain : sums) {
    for (const std::int32_t sum : chain) *sink += static_cast<std::uint32_t>(sum);
  }
  return rounds * kChains * kLanes * 2;
}

std::int64_t floats(std::int64_t rounds, std::uint64_t* sink) {
  float sums[kChains][kLanes] = {};
  volatile float seed = 1e-9f;
  for (std::int64_t i = 0; i < rounds; ++i) {
    const float w = seed;
    for (int chain = 0; chain < kChains; ++chain) {
      for (int lane = 0; lane < kLanes; ++lane) {
        sums[chain][lane] = sums[chain][lane] + w * static_cast<float>(chain + lane);
      }
    }
  }
  for (const auto& chain : sums) {
    for (const float sum : chain) *sink += static_cast<std::uint64_t>(sum);
  }
  return rounds * kChains * kLanes * 2;
}

}  // namespace

const LimitLoops portable_limit_loops = {read, int8_products<std::uint8_t>,
                                         int8_products<std::int8_t>, floats};

}  // namespace dunlin
