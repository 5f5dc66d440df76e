#include "kernels/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <vector>

namespace dunlin {
namespace {

TEST(RopeFrequencies, FallGeometricallyFromOne) {
  const RopeFrequencies f = rope_frequencies(64, 10000);
  ASSERT_EQ(f.inv_freq.size(), 32u);
  EXPECT_EQ(f.rope_dim(), 64);
  EXPECT_DOUBLE_EQ(f.inv_freq[0], 1.0);
  EXPECT_DOUBLE_EQ(f.inv_freq[16], 0.01);
}

// A rotation of (a, b) is a product with e^(i angle).
TEST(ApplyRope, TurnsEachPairByItsAngleAndLeavesTheRest) {
  ThreadPool pool(1);
  RopeFrequencies f = rope_frequencies(6, 500);
  f.attention_factor = 1.25;
  const std::vector<std::int32_t> positions = {0, 3, 1000000};
  std::vector<float> cos(9), sin(9);
  rope_table(pool, f, positions, cos.data(), sin.data());
  for (RopeStyle style : {RopeStyle::kRotateHalf, RopeStyle::kInterleaved}) {
    for (std::size_t t = 0; t < positions.size(); ++t) {
      std::vector<float> x(16);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 5.5f;
      const std::vector<float> before = x;
      apply_rope(style, &cos[3 * t], &sin[3 * t], 6, 2, 8, x.data());
      for (std::size_t h = 0; h < 2; ++h) {
        for (std::size_t j = 0; j < 3; ++j) {
          const std::size_t a = h * 8 + (style == RopeStyle::kRotateHalf ? j : 2 * j);
          const std::size_t b = style == RopeStyle::kRotateHalf ? a + 3 : a + 1;
          const std::complex<double> want =
              std::complex<double>(before[a], before[b]) *
              std::polar(1.25, positions[t] * std::pow(500.0, -2.0 * static_cast<double>(j) / 6));
          EXPECT_NEAR(x[a], want.real(), 2e-6 * 10);
          EXPECT_NEAR(x[b], want.imag(), 2e-6 * 10);
        }
        EXPECT_EQ(x[h * 8 + 6], before[h * 8 + 6]);
        EXPECT_EQ(x[h * 8 + 7], before[h * 8 + 7]);
      }
    }
  }
}

TEST(RopeTable, IsTheSameForAnyNumberOfTokensAndThreads) {
  const RopeFrequencies f = rope_frequencies(64, 1e6);
  std::vector<std::int32_t> positions(333);
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int>(i) * 97;
  ThreadPool one(1), three(3);
  std::vector<float> cos(333 * 32), sin(333 * 32), cos1(32), sin1(32);
  rope_table(three, f, positions, cos.data(), sin.data());
  for (std::size_t i : {0, 100, 332}) {
    rope_table(one, f, std::span(positions).subspan(i, 1), cos1.data(), sin1.data());
    for (std::size_t j = 0; j < 32; ++j) {
      EXPECT_EQ(cos[i * 32 + j], cos1[j]);
      EXPECT_EQ(sin[i * 32 + j], sin1[j]);
    }
  }
}

}  // namespace
}  // namespace dunlin
