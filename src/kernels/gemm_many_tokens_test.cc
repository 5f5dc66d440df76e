// A long prompt: its tokens are multiplied in groups that a core's cache holds.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/row_maxima.h"
#include "kernels/gemm.h"
#include "kernels/gemm_test_support.h"

namespace dunlin {
namespace {

using testing::random_floats;
using testing::random_matrix;

// Rows of 32 KiB as int8 blocks: 150 of them are several groups for caches of up to 9 MiB.
constexpr std::int64_t kCols = 16384, kTokens = 150, kRows = 17, kStride = 20;

class GemmManyTokens : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    const std::vector<float> x = random_floats(kTokens * kCols, 71);
    x_.reserve(kTokens, kCols, true);
    x_.reset(kCols);
    for (std::int64_t t = 0; t < kTokens; ++t) x_.set_row(GetParam(), t, x.data() + t * kCols);
  }

  ThreadPool pool_{3};
  Activations x_;
};

TEST_P(GemmManyTokens, EqualsATokenAtATimeBitForBit) {
  const std::vector<float> bias = random_floats(kRows, 72);
  for (const DType dtype : {DType::kQ8_0, DType::kF16}) {
    const auto stored = random_matrix(dtype, kRows, kCols, 73);
    const PackedMatrix weights =
        PackedMatrix::pack(stored.view(), RowOrder{}, GetParam(), pool_).value();
    for (const bool chosen : {false, true}) {
      std::vector<std::int32_t> rows(kTokens);
      for (std::int32_t t = 0; t < kTokens; ++t)
        rows[static_cast<std::size_t>(t)] = t * 7 % kTokens;
      const std::int32_t* token_rows = chosen ? rows.data() : nullptr;
      std::vector<float> y(kTokens * kStride, -7), maxima(kTokens * maxima_size(kRows));
      const GemmTask all{.weights = &weights,
                         .bias = bias.data(),
                         .y = y.data(),
                         .y_stride = kStride,
                         .maxima = maxima.data()};
      EXPECT_EQ(gemm(pool_, GetParam(), {&all, 1}, x_, kTokens, token_rows), weights.size_bytes());
      for (std::int32_t t = 0; t < kTokens; ++t) {
        const std::int32_t row = chosen ? t * 7 % kTokens : t;
        std::vector<float> one(kStride, -7), one_maxima(maxima_size(kRows));
        const GemmTask single{.weights = &weights,
                              .bias = bias.data(),
                              .y = one.data(),
                              .y_stride = kStride,
                              .maxima = one_maxima.data()};
        gemm(pool_, GetParam(), {&single, 1}, x_, 1, &row);
        ASSERT_EQ(std::memcmp(one.data(), y.data() + t * kStride, kStride * sizeof(float)), 0)
            << dtype_info(dtype).name << " token " << t;
        ASSERT_EQ(std::memcmp(one_maxima.data(), maxima.data() + t * maxima_size(kRows),
                              one_maxima.size() * sizeof(float)),
                  0)
            << dtype_info(dtype).name << " token " << t;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GemmManyTokens, ::testing::ValuesIn(supported_isas()));

}  // namespace
}  // namespace dunlin
