// The loops of the AVX2 kernels: maddubs, madd and add for 32 products, or fma.
#include <immintrin.h>

#include "kernels/limit_loops.h"

namespace dunlin {
namespace {

std::uint64_t sum_of(__m256i v) {
  alignas(32) std::uint64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), v);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

std::uint64_t read(const std::byte* data, std::int64_t n) {
  __m256i sums[8];
  for (auto& sum : sums) sum = _mm256_setzero_si256();
  for (std::int64_t i = 0; i < n; i += 256) {
    for (int j = 0; j < 8; ++j) {
      sums[j] = _mm256_add_epi64(
          sums[j], _mm256_load_si256(reinterpret_cast<const __m256i*>(data + i + 32 * j)));
    }
  }
  for (int j = 1; j < 8; ++j) sums[0] = _mm256_add_epi64(sums[0], sums[j]);
  return sum_of(sums[0]);
}

// Eight chains over two activations and four weights a round; the weights look new to the compiler
// in each round, so nothing leaves the loop.
template <bool kSigned>
std::int64_t int8_products(std::int64_t rounds, std::uint64_t* sink) {
  __m256i sums[8], x[2];
  for (auto& sum : sums) sum = _mm256_setzero_si256();
  for (int i = 0; i < 2; ++i) {
    x[i] = _mm256_set1_epi8(static_cast<char>(i - 2));
    asm volatile("" : "+x"(x[i]));
  }
  __m256i w = _mm256_set1_epi8(3);
  const __m256i ones = _mm256_set1_epi16(1);
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (int quarter = 0; quarter < 4; ++quarter) {
      asm volatile("" : "+x"(w));
      const __m256i magnitude = kSigned ? _mm256_abs_epi8(w) : w;
      for (int i = 0; i < 2; ++i) {
        const __m256i xs = kSigned ? _mm256_sign_epi8(x[i], w) : x[i];
        const __m256i pairs = _mm256_maddubs_epi16(magnitude, xs);
        sums[2 * quarter + i] =
            _mm256_add_epi32(sums[2 * quarter + i], _mm256_madd_epi16(pairs, ones));
      }
    }
  }
  for (int j = 1; j < 8; ++j) sums[0] = _mm256_add_epi32(sums[0], sums[j]);
  *sink += sum_of(sums[0]);
  return rounds * 8 * 32 * 2;
}

std::int64_t floats(std::int64_t rounds, std::uint64_t* sink) {
  __m256 sums[12];
  for (auto& sum : sums) sum = _mm256_setzero_ps();
  __m256 w = _mm256_set1_ps(1e-9f);
  const __m256 x = _mm256_set1_ps(0.5f);
  for (std::int64_t round = 0; round < rounds; ++round) {
    asm volatile("" : "+x"(w));
    for (auto& sum : sums) sum = _mm256_fmadd_ps(w, x, sum);
  }
  for (int j = 1; j < 12; ++j) sums[0] = _mm256_add_ps(sums[0], sums[j]);
  *sink += sum_of(_mm256_castps_si256(sums[0]));
  return rounds * 12 * 8 * 2;
}

}  // namespace

const LimitLoops avx2_limit_loops = {read, int8_products<false>, int8_products<true>, floats};

}  // namespace dunlin
