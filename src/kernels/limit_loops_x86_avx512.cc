// The loops of the AVX-512 kernels: dpbusd for 64 products (signed weights are made unsigned when
// they are packed, so both kinds are one loop), or fma.
#include <immintrin.h>

#include "kernels/limit_loops.h"

namespace dunlin {
namespace {

std::uint64_t sum_of(__m512i v) {
  alignas(64) std::uint64_t lanes[8];
  _mm512_store_si512(lanes, v);
  std::uint64_t sum = 0;
  for (const std::uint64_t lane : lanes) sum += lane;
  return sum;
}

std::uint64_t read(const std::byte* data, std::int64_t n) {
  __m512i sums[4];
  for (auto& sum : sums) sum = _mm512_setzero_si512();
  for (std::int64_t i = 0; i < n; i += 256) {
    for (int j = 0; j < 4; ++j) {
      sums[j] = _mm512_add_epi64(sums[j], _mm512_load_si512(data + i + 64 * j));
    }
  }
  for (int j = 1; j < 4; ++j) sums[0] = _mm512_add_epi64(sums[0], sums[j]);
  return sum_of(sums[0]);
}

std::int64_t int8_products(std::int64_t rounds, std::uint64_t* sink) {
  __m512i sums[16];
  for (auto& sum : sums) sum = _mm512_setzero_si512();
  __m512i w = _mm512_set1_epi8(3);
  const __m512i x = _mm512_set1_epi8(-2);
  for (std::int64_t round = 0; round < rounds; ++round) {
    asm volatile("" : "+v"(w));
    for (auto& sum : sums) sum = _mm512_dpbusd_epi32(sum, w, x);
  }
  for (int j = 1; j < 16; ++j) sums[0] = _mm512_add_epi32(sums[0], sums[j]);
  *sink += sum_of(sums[0]);
  return rounds * 16 * 64 * 2;
}

std::int64_t floats(std::int64_t rounds, std::uint64_t* sink) {
  __m512 sums[16];
  for (auto& sum : sums) sum = _mm512_setzero_ps();
  __m512 w = _mm512_set1_ps(1e-9f);
  const __m512 x = _mm512_set1_ps(0.5f);
  for (std::int64_t round = 0; round < rounds; ++round) {
    asm volatile("" : "+v"(w));
    for (auto& sum : sums) sum = _mm512_fmadd_ps(w, x, sum);
  }
  for (int j = 1; j < 16; ++j) sums[0] = _mm512_add_ps(sums[0], sums[j]);
  *sink += sum_of(_mm512_castps_si512(sums[0]));
  return rounds * 16 * 16 * 2;
}

}  // namespace

const LimitLoops avx512_limit_loops = {read, int8_products, int8_products, floats};

}  // namespace dunlin
