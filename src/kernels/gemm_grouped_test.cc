// Many matrices in one phase, each with rows of its own: experts and their tokens.
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/gemm.h"
#include "kernels/gemm_test_support.h"

namespace dunlin {
namespace {

using testing::random_floats;
using testing::random_matrix;
using testing::StoredMatrix;

constexpr std::int64_t kCols = 160, kTokens = 50, kStride = 80;

struct Group {
  PackedMatrix weights;
  std::vector<std::int32_t> rows;
  std::vector<float> y = std::vector<float>(48 * kStride, -7.0f);
};

// Of odd sizes and of several types, with 0 to 47 rows each.
Group make_group(std::size_t idx, Isa isa, ThreadPool& pool) {
  Group group;
  const DType dtype = idx % 3 == 0 ? DType::kQ4_0 : idx % 3 == 1 ? DType::kQ8_0 : DType::kF32;
  const StoredMatrix w = random_matrix(dtype, static_cast<std::int64_t>(1 + idx * 7 % 80), kCols,
                                       static_cast<std::uint32_t>(idx));
  group.weights = PackedMatrix::pack(w.view(), RowOrder{}, isa, pool).value();
  const std::size_t count = idx % 5 == 1 ? 0 : idx * 11 % 47 + 1;
  for (std::size_t i = 0; i < count; ++i)
    group.rows.push_back(static_cast<std::int32_t>((i * 13 + idx) % kTokens));
  return group;
}

class GemmGrouped : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    const std::vector<float> x = random_floats(kTokens * kCols, 91);
    x_.reserve(kTokens, kCols, true);
    x_.reset(kCols);
    for (std::int64_t t = 0; t < kTokens; ++t) x_.set_row(GetParam(), t, x.data() + t * kCols);
  }

  const std::vector<float> bias_ = random_floats(kStride, 92);
  ThreadPool pool_{3};
  Activations x_;
};

TEST_P(GemmGrouped, EqualsACallForEachBitForBit) {
  for (const std::size_t num_groups : {1u, 2u, 33u, 100u}) {
    std::vector<Group> groups;
    for (std::size_t g = 0; g < num_groups; ++g) groups.push_back(make_group(g, GetParam(), pool_));
    std::vector<GemmTask> tasks(num_groups);
    std::vector<std::vector<float>> want;
    std::int64_t bytes = 0;
    for (std::size_t g = 0; g < num_groups; ++g) {
      std::vector<float>& single = want.emplace_back(groups[g].y);
      GemmTask& task = tasks[g];
      task.weights = &groups[g].weights;
      task.bias = g % 2 == 0 ? bias_.data() : nullptr;
      task.y = single.data();
      task.y_stride = kStride;
      task.num_tokens = static_cast<std::int64_t>(groups[g].rows.size());
      task.token_rows = groups[g].rows.data();
      bytes += gemm(pool_, GetParam(), {&task, 1}, x_, task.num_tokens, task.token_rows);
      task.y = groups[g].y.data();
    }
    EXPECT_EQ(gemm_grouped(pool_, GetParam(), tasks, x_), bytes);
    for (std::size_t g = 0; g < num_groups; ++g) {
      const std::vector<float>& y = groups[g].y;
      EXPECT_EQ(std::memcmp(y.data(), want[g].data(), y.size() * sizeof(float)), 0) << g;
    }
  }
}

TEST_P(GemmGrouped, NoTokensReadNothing) {
  const Group group = make_group(0, GetParam(), pool_);
  const GemmTask task{.weights = &group.weights};
  EXPECT_EQ(gemm_grouped(pool_, GetParam(), {&task, 1}, x_), 0);
  EXPECT_EQ(gemm_grouped(pool_, GetParam(), {}, x_), 0);
}

INSTANTIATE_TEST_SUITE_P(All, GemmGrouped, ::testing::ValuesIn(supported_isas()));

}  // namespace
}  // namespace dunlin
