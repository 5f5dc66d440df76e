// The loops of the NEON kernels: sdot for 16 products (codes of either kind are signed bytes to
// it, so both kinds are one loop), or fma.
#include <arm_neon.h>

#include "kernels/limit_loops.h"

namespace dunlin {
namespace {

std::uint64_t read(const std::byte* data, std::int64_t n) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(data);
  uint64x2_t sums[8];
  for (auto& sum : sums) sum = vdupq_n_u64(0);
  for (std::int64_t i = 0; i < n; i += 128) {
    for (int j = 0; j < 8; ++j) {
      sums[j] = vaddq_u64(sums[j], vreinterpretq_u64_u8(vld1q_u8(bytes + i + 16 * j)));
    }
  }
  for (int j = 1; j < 8; ++j) sums[0] = vaddq_u64(sums[0], sums[j]);
  return vaddvq_u64(sums[0]);
}

// The weights look new to the compiler in each round, so nothing leaves the loop.
std::int64_t int8_products(std::int64_t rounds, std::uint64_t* sink) {
  int32x4_t sums[16];
  for (auto& sum : sums) sum = vdupq_n_s32(0);
  int8x16_t w = vdupq_n_s8(3);
  const int8x16_t x = vdupq_n_s8(-2);
  for (std::int64_t round = 0; round < rounds; ++round) {
    asm volatile("" : "+w"(w));
    for (auto& sum : sums) sum = vdotq_laneq_s32(sum, w, x, 0);
  }
  for (int j = 1; j < 16; ++j) sums[0] = vaddq_s32(sums[0], sums[j]);
  *sink += static_cast<std::uint32_t>(vaddvq_s32(sums[0]));
  return rounds * 16 * 16 * 2;
}

std::int64_t floats(std::int64_t rounds, std::uint64_t* sink) {
  float32x4_t sums[16];
  for (auto& sum : sums) sum = vdupq_n_f32(0);
  float32x4_t w = vdupq_n_f32(1e-9f);
  const float32x4_t x = vdupq_n_f32(0.5f);
  for (std::int64_t round = 0; round < rounds; ++round) {
    asm volatile("" : "+w"(w));
    for (auto& sum : sums) sum = vfmaq_f32(sum, w, x);
  }
  for (int j = 1; j < 16; ++j) sums[0] = vaddq_f32(sums[0], sums[j]);
  *sink += static_cast<std::uint64_t>(vaddvq_f32(sums[0]));
  return rounds * 16 * 4 * 2;
}

}  // namespace

const LimitLoops neon_limit_loops = {read, int8_products, int8_products, floats};

}  // namespace dunlin
