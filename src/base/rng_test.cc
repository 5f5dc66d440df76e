#include "base/rng.h"

#include <gtest/gtest.h>

namespace dunlin {
namespace {

// Known answers from the paper's reference implementation (Random123, kat_vectors).
TEST(Philox, MatchesTheKnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                       {0xffffffff, 0xffffffff}),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(UniformAt, StaysInTheUnitIntervalAndFillsItEvenly) {
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double u = uniform_at(42, 0, i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.01);
}

TEST(UniformAt, DependsOnSeedStreamAndPosition) {
  EXPECT_NE(uniform_at(1, 0, 0), uniform_at(2, 0, 0));
  EXPECT_NE(uniform_at(1, 0, 0), uniform_at(1, 1, 0));
  EXPECT_NE(uniform_at(1, 0, 0), uniform_at(1, 0, 1));
  EXPECT_EQ(uniform_at(1, 2, 3), uniform_at(1, 2, 3));
}

}  // namespace
}  // namespace dunlin
