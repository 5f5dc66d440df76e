#include "kernels/page_selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/attention_fixture_for_tests.h"
#include "kernels/float_tables_for_tests.h"
#include "quant/dequantize.h"

namespace dunlin {
namespace {

using Floats = std::vector<float>;

// Keys as the fixture makes them, rounded as they are stored.
float key(const AttentionFixture& fixture, int seq, int token, int kv_head, int d) {
  const AttentionShape& shape = fixture.shape();
  const Floats k = AttentionFixture::row(2, seq, token, shape.kv_heads * shape.dim_k);
  return f16_to_f32(f32_to_f16(k[static_cast<std::size_t>(kv_head * shape.dim_k + d)]));
}

TEST(PageBounds, AreTheGreatestAndLeastOfEachDimension) {
  for (const int dim : {20, 64, 136}) {
    AttentionFixture fixture({.heads = 4, .kv_heads = 2, .dim_k = dim, .dim_v = 12}, {48, 64});
    const std::int64_t stride = PageBounds::stride(dim);
    const std::int32_t block = fixture.entry(1, 2);
    std::vector<std::uint16_t> halves(static_cast<std::size_t>((block + 1) * 2 * stride));
    std::vector<std::uint8_t> known(static_cast<std::size_t>(block) + 1);
    Floats scratch(static_cast<std::size_t>(dim) * kKvBlockSize);
    bound_page(fixture.layer(), block, {halves.data(), known.data()}, scratch.data());
    EXPECT_EQ(known[static_cast<std::size_t>(block)], 1);
    for (int h = 0; h < 2; ++h) {
      const std::uint16_t* page = halves.data() + (block * 2 + h) * stride;
      for (int d = 0; d < dim; ++d) {
        float most = -1e9f, least = 1e9f;
        for (int t = 32; t < 48; ++t) {
          most = std::max(most, key(fixture, 1, t, h, d));
          least = std::min(least, key(fixture, 1, t, h, d));
        }
        EXPECT_EQ(f16_to_f32(page[d]), most) << d;
        EXPECT_EQ(f16_to_f32(page[dim + d]), least) << d;
      }
      for (std::int64_t i = 2 * dim; i < stride; ++i) EXPECT_EQ(page[i], 0);
    }
  }
}

class PageSelectionTable : public testing::TestWithParam<NamedTable> {
 protected:
  const FloatKernels& fast() const { return *GetParam().table; }
};
INSTANTIATE_TEST_SUITE_P(Isa, PageSelectionTable, testing::ValuesIn(fast_tables()),
                         [](const auto& param) { return param.param.name; });

TEST_P(PageSelectionTable, ScoresAreThoseOfTheReference) {
  for (const std::int64_t n : {16, 48, 128, 272}) {
    std::vector<std::uint16_t> bounds;
    for (const float x : AttentionFixture::row(5, 1, 1, static_cast<int>(n)))
      bounds.push_back(f32_to_f16(x));
    for (const int rows : {1, 3, 7}) {
      const Floats q = AttentionFixture::row(6, 1, rows, rows * static_cast<int>(n));
      const float want = reference_float_kernels().page_score(bounds.data(), q.data(), rows, n);
      EXPECT_NEAR(fast().page_score(bounds.data(), q.data(), rows, n), want, 2e-4) << n;
    }
  }
}

// The blocks by the formula of the header, over whole pages.
std::vector<std::int32_t> best_pages(AttentionFixture& fixture, int seq, int token, int kv_head,
                                     int budget) {
  const AttentionShape& shape = fixture.shape();
  const Floats q = fixture.query(seq, token);
  const int group = shape.heads / shape.kv_heads, own = token / kKvBlockSize;
  std::vector<double> scores;
  for (int b = 0; b < own; ++b) {
    double best = -1e9;
    for (int h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      double sum = 0;
      for (int d = 0; d < shape.dim_k; ++d) {
        double most = -1e9;
        for (int t = b * kKvBlockSize; t < (b + 1) * kKvBlockSize; ++t)
          most = std::max(most, double{q[static_cast<std::size_t>(h * shape.dim_k + d)]} *
                                    key(fixture, seq, t, kv_head, d));
        sum += most;
      }
      best = std::max(best, sum);
    }
    scores.push_back(best);
  }
  std::vector<int> order(static_cast<std::size_t>(own));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  order.resize(static_cast<std::size_t>(budget) - 1);
  std::sort(order.begin(), order.end());
  order.push_back(own);
  std::vector<std::int32_t> blocks;
  for (const int b : order) blocks.push_back(fixture.entry(seq, b));
  return blocks;
}

TEST_P(PageSelectionTable, TakesThePagesThatCanMatterMost) {
  ThreadPool pool(2);
  AttentionFixture fixture({.heads = 6, .kv_heads = 2, .dim_k = 40, .dim_v = 24}, {400, 90});
  fixture.select(/*num_pages=*/5, /*from_token=*/200);
  fixture.run(fast(), fixture.params(), {{0, 190, 60}, {1, 89, 1}, {0, 399, 1}}, pool);
  EXPECT_FALSE(fixture.selection().is_sparse(9));
  EXPECT_FALSE(fixture.selection().is_sparse(60)) << "the second sequence is in its prompt";
  for (const auto& [row, token] : {std::pair{10, 200}, {25, 215}, {59, 249}, {61, 399}}) {
    ASSERT_TRUE(fixture.selection().is_sparse(row));
    for (int h = 0; h < 2; ++h) {
      const auto got = fixture.selection().pages(row, h);
      EXPECT_EQ(std::vector<std::int32_t>(got.begin(), got.end()),
                best_pages(fixture, 0, token, h, 5))
          << token << " " << h;
    }
  }
}

TEST_P(PageSelectionTable, AttentionOverThemIsThatOfTheReference) {
  ThreadPool pool(2);
  const AttentionShape shapes[] = {
      {14, 2, 64, 64}, {3, 1, 40, 24}, {6, 6, 20, 12}, {100, 1, 16, 8}};
  for (const AttentionShape& shape : shapes) {
    AttentionFixture fixture(shape, {900, 700, 300});
    fixture.select(20, 250);
    const std::vector<QuerySpan> spans = {{0, 899, 1}, {1, 230, 60}, {2, 299, 1}};
    const Floats want = fixture.run(reference_float_kernels(), fixture.params(), spans, pool);
    const Floats got = fixture.run(fast(), fixture.params(), spans, pool);
    ASSERT_EQ(want.size(), got.size());
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 4e-6) << i;
  }
}

TEST_P(PageSelectionTable, NothingDependsOnCompanyChunksOrThreads) {
  ThreadPool pool(2);
  AttentionFixture fixture({.heads = 14, .kv_heads = 2}, {900, 900, 700});
  fixture.select(24, 300);
  const Floats whole = fixture.run(fast(), fixture.params(), {{0, 250, 500}}, pool);
  EXPECT_EQ(run_chunks_in_company(fixture, fast(), 250, 500), whole);
}

TEST_P(PageSelectionTable, ABudgetForAllPagesChangesNothing) {
  ThreadPool pool(2);
  AttentionFixture fixture({.heads = 14, .kv_heads = 2}, {900});
  const Floats want = fixture.run(fast(), fixture.params(), {{0, 890, 10}}, pool);
  fixture.select(57, 0);
  EXPECT_EQ(fixture.run(fast(), fixture.params(), {{0, 890, 10}}, pool), want);
  fixture.select(56, 0);
  EXPECT_NE(fixture.run(fast(), fixture.params(), {{0, 899, 1}}, pool),
            Floats(want.end() - 14 * 64, want.end()));
}

}  // namespace
}  // namespace dunlin
