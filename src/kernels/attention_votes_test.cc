#include "kernels/attention_votes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/attention_fixture_for_tests.h"
#include "kernels/float_tables_for_tests.h"
#include "kernels/kv_codec.h"

namespace dunlin {
namespace {

using Floats = std::vector<float>;

// What a query gives each position by the formula, for the query heads of a KV head together, from
// what the cache stands for.
std::vector<double> formula(AttentionFixture& fixture, const AttentionParams& params, int seq,
                            int token, int kv_head) {
  const AttentionShape& shape = fixture.shape();
  const PagedKvLayer& layer = fixture.layer();
  const Floats q = fixture.query(seq, token);
  const int group = shape.heads / shape.kv_heads;
  std::vector<double> votes(static_cast<std::size_t>(token) + 1);
  Floats keys(static_cast<std::size_t>(shape.dim_k) * kKvBlockSize);
  for (int h = kv_head * group; h < (kv_head + 1) * group; ++h) {
    std::vector<double> weights;
    double sum = params.sinks != nullptr ? std::exp(params.sinks[h]) : 0;
    for (int j = 0; j <= token; ++j) {
      if (j % kKvBlockSize == 0)
        read_kv_keys(layer.k, fixture.block(seq, j / kKvBlockSize) + layer.k_offset, kv_head,
                     keys.data());
      double score = 0;
      for (int d = 0; d < shape.dim_k; ++d)
        score += double{q[static_cast<std::size_t>(h * shape.dim_k + d)]} *
                 keys[static_cast<std::size_t>(d * kKvBlockSize + j % kKvBlockSize)];
      score *= params.scale;
      if (params.softcap != 0) score = params.softcap * std::tanh(score / params.softcap);
      weights.push_back(std::exp(score));
      sum += weights.back();
    }
    for (std::size_t j = 0; j < votes.size(); ++j) votes[j] += weights[j] / sum;
  }
  return votes;
}

// Of the tokens [first, first + count), for a KV head.
std::vector<double> sums(AttentionFixture& fixture, const AttentionParams& params,
                         const QuerySpan& span, int kv_head) {
  std::vector<double> all(static_cast<std::size_t>(span.first + span.count));
  for (int t = span.first; t < span.first + span.count; ++t) {
    const auto votes = formula(fixture, params, span.seq, t, kv_head);
    for (std::size_t j = 0; j < votes.size(); ++j) all[j] += votes[j];
  }
  return all;
}

void expect_sums(AttentionFixture& fixture, const AttentionParams& params, const QuerySpan& span,
                 double tolerance) {
  const Floats& got = fixture.votes(span.seq);
  const std::size_t stride = got.size() / static_cast<std::size_t>(fixture.shape().kv_heads);
  for (int h = 0; h < fixture.shape().kv_heads; ++h) {
    const std::vector<double> want = sums(fixture, params, span, h);
    for (std::size_t j = 0; j < stride; ++j)
      ASSERT_NEAR(got[static_cast<std::size_t>(h) * stride + j], j < want.size() ? want[j] : 0,
                  tolerance)
          << "head " << h << " position " << j;
  }
}

class AttentionVotes : public testing::TestWithParam<NamedTable> {
 protected:
  const FloatKernels& table() const { return *GetParam().table; }
};
std::vector<NamedTable> all_tables() {
  std::vector<NamedTable> tables = fast_tables();
  tables.push_back({"reference", &reference_float_kernels()});
  return tables;
}
INSTANTIATE_TEST_SUITE_P(Isa, AttentionVotes, testing::ValuesIn(all_tables()),
                         [](const auto& param) { return param.param.name; });

TEST_P(AttentionVotes, AreTheSumsOfTheWeights) {
  ThreadPool pool(2);
  const AttentionShape shapes[] = {
      {.heads = 14, .kv_heads = 2, .dim_k = 64, .dim_v = 64},
      {.heads = 3, .kv_heads = 1, .dim_k = 40, .dim_v = 24},
      {.heads = 6, .kv_heads = 6, .dim_k = 20, .dim_v = 12},
      {.heads = 100, .kv_heads = 1, .dim_k = 24, .dim_v = 16, .values = AttentionValues::kInKeys},
  };
  const std::vector<QuerySpan> spans = {{0, 299, 1}, {1, 250, 20}};
  for (const AttentionShape& shape : shapes) {
    Floats sinks(static_cast<std::size_t>(shape.heads));
    std::iota(sinks.begin(), sinks.end(), -2.0f);
    for (int variant = 0; variant < 3; ++variant) {
      AttentionFixture fixture(shape, {300, 270});
      AttentionParams params = fixture.params();
      if (variant == 1) params.softcap = 1.5f;
      if (variant == 2) params.sinks = sinks.data();
      fixture.count_votes();
      fixture.run(table(), params, spans, pool);
      for (const QuerySpan& span : spans) expect_sums(fixture, params, span, 2e-5);
    }
  }
}

TEST_P(AttentionVotes, AreOfEveryFormatOfTheCache) {
  ThreadPool pool(2);
  for (const KvFormat format : all_kv_formats()) {
    for (const AttentionValues values : {AttentionValues::kOwn, AttentionValues::kInKeys}) {
      SCOPED_TRACE(kv_format_info(format).name);
      AttentionFixture fixture({.heads = 6,
                                .kv_heads = 2,
                                .dim_k = 96,
                                .dim_v = 64,
                                .formats = format,
                                .values = values},
                               {290});
      fixture.count_votes();
      fixture.run(table(), fixture.params(), {{0, 270, 20}}, pool);
      expect_sums(fixture, fixture.params(), {0, 270, 20}, 4e-4);
    }
  }
}

TEST_P(AttentionVotes, NothingDependsOnCompanyChunksOrThreads) {
  ThreadPool pool(2);
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kInt8}) {
    const AttentionShape shape{.heads = 14, .kv_heads = 2, .formats = format};
    AttentionFixture whole(shape, {600, 900, 700}), parts(shape, {600, 900, 700});
    whole.count_votes();
    parts.count_votes();
    whole.run(table(), whole.params(), {{0, 400, 200}}, pool);
    run_chunks_in_company(parts, table(), 400, 200);
    const Floats &want = whole.votes(0), &got = parts.votes(0);
    ASSERT_EQ(want, got);
    EXPECT_NEAR(std::accumulate(want.begin(), want.end(), 0.0), 200 * 14, 0.2);
  }
}

TEST_P(AttentionVotes, AChunkAddsToWhatWasThere) {
  ThreadPool pool(1);
  AttentionFixture fixture({.heads = 4, .kv_heads = 2}, {40});
  fixture.count_votes();
  fixture.run(table(), fixture.params(), {{0, 0, 1}}, pool);
  const Floats one = fixture.votes(0);
  EXPECT_NEAR(one[0], 2, 1e-5) << "the first token gives all to itself";
  EXPECT_EQ(one[1], 0);
  fixture.run(table(), fixture.params(), {{0, 0, 40}}, pool);
  EXPECT_GT(fixture.votes(0)[0], one[0] + 2);
  EXPECT_GT(fixture.votes(0)[39], 0);
}

}  // namespace
}  // namespace dunlin
