#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/attention_fixture_for_tests.h"
#include "kernels/float_tables_for_tests.h"
#include "quant/dequantize.h"

namespace dunlin {
namespace {

using Floats = std::vector<float>;

// The formula of attention.h with a whole softmax, from the numbers before they were paged.
Floats formula(const AttentionFixture& fixture, const AttentionParams& params, int seq, int token) {
  const AttentionShape& shape = fixture.shape();
  const Floats q = fixture.query(seq, token), sink_q = fixture.sink_query(seq, token);
  const int kept = shape.window > 0 ? 0 : fixture.first_kept(seq, token);
  const int num_sinks = kept > 0 ? fixture.num_sinks(seq) : 0;
  const int begin = shape.window > 0 ? std::max(0, token - shape.window + 1) : kept;
  Floats out;
  for (int h = 0; h < shape.heads; ++h) {
    const int kv_head = h / (shape.heads / shape.kv_heads);
    std::vector<double> weights;
    std::vector<Floats> values;
    double sum = params.sinks != nullptr ? std::exp(params.sinks[h]) : 0;
    for (int j = 0; j <= token; ++j) {
      if (j < begin && j >= num_sinks) continue;
      const Floats k = AttentionFixture::row(2, seq, j, shape.kv_heads * shape.dim_k);
      values.push_back(AttentionFixture::row(3, seq, j, shape.kv_heads * shape.dim_v));
      double score = 0;
      for (int d = 0; d < shape.dim_k; ++d) {
        const auto qi = static_cast<std::size_t>(h * shape.dim_k + d);
        const auto ki = static_cast<std::size_t>(kv_head * shape.dim_k + d);
        score += double{(j < num_sinks ? sink_q : q)[qi]} * f16_to_f32(f32_to_f16(k[ki]));
      }
      score *= params.scale;
      if (params.softcap != 0) score = params.softcap * std::tanh(score / params.softcap);
      weights.push_back(std::exp(score));
      sum += weights.back();
    }
    for (int d = 0; d < shape.dim_v; ++d) {
      double o = 0;
      for (std::size_t j = 0; j < weights.size(); ++j) {
        const auto vi = static_cast<std::size_t>(kv_head * shape.dim_v + d);
        o += weights[j] / sum * f16_to_f32(f32_to_f16(values[j][vi]));
      }
      out.push_back(static_cast<float>(o));
    }
  }
  return out;
}

double greatest_difference(const Floats& a, const Floats& b) {
  EXPECT_EQ(a.size(), b.size());
  double greatest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(double{a[i]} - b[i]);
    greatest = difference <= greatest ? greatest : difference;  // NaN is greatest of all
  }
  return greatest;
}

TEST(ReferenceAttention, IsTheFormula) {
  ThreadPool pool(1);
  const float sinks[] = {0.5f, -1.0f, 2.0f, 0.0f, 1.0f, -3.0f};
  for (int window : {0, 20}) {
    AttentionFixture fixture(
        {.heads = 6, .kv_heads = 2, .dim_k = 24, .dim_v = 16, .window = window}, {37, 50});
    for (int variant = 0; variant < 3; ++variant) {
      AttentionParams params = fixture.params();
      if (variant == 1) params.softcap = 1.5f;
      if (variant == 2) params.sinks = sinks;
      const Floats got =
          fixture.run(reference_float_kernels(), params, {{1, 49, 1}, {0, 15, 3}}, pool);
      Floats want = formula(fixture, params, 1, 49);
      for (int t : {15, 16, 17}) {
        const Floats row = formula(fixture, params, 0, t);
        want.insert(want.end(), row.begin(), row.end());
      }
      EXPECT_LT(greatest_difference(got, want), 1e-6) << window << " " << variant;
    }
  }
}

// Of outputs whose values are at most 2. Products of codes are integers where the instruction set
// has them, of queries and weights of 15 bits.
double tolerance(KvFormat format) {
  return format == KvFormat::kInt8 || format == KvFormat::kInt4 ? 4e-4 : 4e-6;
}

TEST(ReferenceAttention, SeesSinksAndTheNewestTokens) {
  ThreadPool pool(1);
  AttentionFixture fixture({.heads = 6, .kv_heads = 2, .dim_k = 24, .dim_v = 16}, {200, 50});
  fixture.keep(0, 20, 48);
  Floats want;
  for (int t = 70; t < 200; ++t) {
    const Floats row = formula(fixture, fixture.params(), 0, t);
    want.insert(want.end(), row.begin(), row.end());
  }
  const Floats got = fixture.run(reference_float_kernels(), fixture.params(), {{0, 70, 130}}, pool);
  EXPECT_LT(greatest_difference(got, want), 1e-6);
}

class AttentionTable : public testing::TestWithParam<NamedTable> {
 protected:
  const FloatKernels& fast() const { return *GetParam().table; }
};
INSTANTIATE_TEST_SUITE_P(Isa, AttentionTable, testing::ValuesIn(fast_tables()),
                         [](const auto& param) { return param.param.name; });

TEST_P(AttentionTable, EqualsTheReferenceAtEveryHeadShapeAndStorageFormat) {
  ThreadPool pool(2);
  const AttentionShape shapes[] = {
      {14, 2, 64, 64}, {9, 3, 64, 64},   {4, 1, 256, 256},  {6, 6, 80, 80},
      {8, 2, 96, 96},  {5, 5, 112, 112}, {12, 4, 128, 128}, {3, 1, 40, 24},
      {2, 2, 20, 12},  {100, 1, 16, 8},  {11, 1, 8, 72},
  };
  for (AttentionShape shape : shapes) {
    for (const KvFormat format : all_kv_formats()) {
      shape.formats = format;
      AttentionFixture fixture(shape, {300, 17, 70});
      const AttentionParams params = fixture.params();
      const std::vector<QuerySpan> spans = {{0, 260, 25}, {1, 16, 1}, {2, 0, 9}};
      const Floats want = fixture.run(reference_float_kernels(), params, spans, pool);
      const Floats got = fixture.run(fast(), params, spans, pool);
      EXPECT_LT(greatest_difference(got, want), tolerance(format))
          << shape.heads << "/" << shape.kv_heads << " x " << shape.dim_k << "/" << shape.dim_v
          << " " << kv_format_info(format).name;
    }
  }
}

// Sequences that see all, few sinks, sinks over several splits and none; some with odd heads.
TEST_P(AttentionTable, KeptTokensAreThoseOfTheReference) {
  ThreadPool pool(2);
  const AttentionShape shapes[] = {{14, 2, 64, 64}, {3, 1, 40, 24}, {6, 6, 20, 12}, {2, 2, 64, 64}};
  for (const AttentionShape& shape : shapes) {
    AttentionFixture fixture(shape, {900, 900, 700, 300});
    fixture.keep(1, 4, 64);
    fixture.keep(2, 300, 128);
    fixture.keep(3, 0, 16);
    const std::vector<QuerySpan> spans = {{0, 899, 1}, {1, 40, 150}, {2, 699, 1}, {3, 298, 2}};
    const Floats want = fixture.run(reference_float_kernels(), fixture.params(), spans, pool);
    const Floats got = fixture.run(fast(), fixture.params(), spans, pool);
    EXPECT_LT(greatest_difference(got, want), 4e-6) << shape.heads << "/" << shape.kv_heads;
  }
}

TEST_P(AttentionTable, KeptTokensDependOnNoCompanyChunksOrThreads) {
  ThreadPool pool(2);
  AttentionFixture fixture({.heads = 14, .kv_heads = 2}, {900, 900, 700});
  fixture.keep(0, 4, 256);
  fixture.keep(2, 20, 32);
  const Floats whole = fixture.run(fast(), fixture.params(), {{0, 200, 600}}, pool);
  EXPECT_EQ(run_chunks_in_company(fixture, fast(), 200, 600), whole);
}

TEST_P(AttentionTable, MixesStorageFormats) {
  ThreadPool pool(1);
  for (const KvFormat k : all_kv_formats()) {
    for (const KvFormat v : all_kv_formats()) {
      AttentionFixture fixture({.formats = {k, v}}, {40});
      const std::vector<QuerySpan> spans = {{0, 30, 10}, {0, 39, 1}};
      const Floats want = fixture.run(reference_float_kernels(), fixture.params(), spans, pool);
      EXPECT_LT(greatest_difference(fixture.run(fast(), fixture.params(), spans, pool), want),
                std::max(tolerance(k), tolerance(v)))
          << kv_format_info(k).name << " " << kv_format_info(v).name;
    }
  }
}

// Latents in every format: codes are turned within their values, so no copy could equal them.
TEST_P(AttentionTable, ReadsValuesFromKeysOfEveryFormat) {
  ThreadPool pool(2);
  const AttentionShape shapes[] = {
      {4, 1, 32, 24}, {16, 1, 576, 512}, {100, 1, 24, 8}, {3, 3, 20, 12}, {5, 1, 40, 40}};
  for (AttentionShape shape : shapes) {
    for (const KvFormat format : all_kv_formats()) {
      shape.formats = format;
      shape.values = AttentionValues::kInKeys;
      AttentionFixture fixture(shape, {300, 17});
      const std::vector<QuerySpan> spans = {{0, 254, 6}, {1, 16, 1}, {0, 299, 1}};
      const Floats want = fixture.run(reference_float_kernels(), fixture.params(), spans, pool);
      const Floats got = fixture.run(fast(), fixture.params(), spans, pool);
      EXPECT_LT(greatest_difference(got, want), tolerance(format))
          << shape.dim_k << "/" << shape.dim_v << " " << kv_format_info(format).name;
    }
  }
}

// Latent attention's cache: the arithmetic is that of values which are stored, bit for bit.
TEST_P(AttentionTable, ReadsValuesFromKeysAsFromCopies) {
  ThreadPool pool(2);
  const AttentionShape shapes[] = {
      {4, 1, 32, 24}, {16, 1, 576, 512}, {100, 1, 24, 8}, {3, 3, 20, 12}, {5, 1, 40, 40}};
  const std::vector<QuerySpan> spans = {{0, 254, 6}, {1, 16, 1}, {2, 0, 3}, {0, 299, 1}};
  for (AttentionShape shape : shapes) {
    for (const KvFormat format : {KvFormat::kF16, KvFormat::kBF16, KvFormat::kF32}) {
      shape.formats = format;
      shape.values = AttentionValues::kCopied;
      AttentionFixture copied(shape, {300, 17, 70});
      shape.values = AttentionValues::kInKeys;
      AttentionFixture in_keys(shape, {300, 17, 70});
      const AttentionParams params = in_keys.params();
      const Floats got = in_keys.run(fast(), params, spans, pool);
      EXPECT_EQ(got, copied.run(fast(), params, spans, pool))
          << shape.heads << " x " << shape.dim_k << "/" << shape.dim_v << " "
          << kv_format_info(format).name;
      const Floats want = in_keys.run(reference_float_kernels(), params, spans, pool);
      EXPECT_EQ(want, copied.run(reference_float_kernels(), params, spans, pool));
      EXPECT_LT(greatest_difference(got, want), 4e-6);
    }
  }
}

// Heads that are more than a tile holds are cut evenly.
TEST_P(AttentionTable, CutsManyHeadsOfOneKvHeadEvenly) {
  ThreadPool pool(1);
  AttentionFixture fixture({.heads = 128, .kv_heads = 1, .dim_k = 16, .dim_v = 16}, {20});
  fixture.run(fast(), fixture.params(), {{0, 19, 1}}, pool);
  ASSERT_EQ(fixture.scratch().plan().own().tiles.size(), 2u);
  EXPECT_EQ(fixture.scratch().plan().own().tiles[0].num_heads, 64);
  EXPECT_EQ(fixture.scratch().plan().own().tiles[1].num_heads, 64);
}

TEST_P(AttentionTable, EqualsTheReferenceWithWindowSoftcapSinksAndWithoutCausality) {
  ThreadPool pool(2);
  std::vector<float> sinks(6);
  for (std::size_t i = 0; i < sinks.size(); ++i) sinks[i] = static_cast<float>(i) * 3 - 4;
  for (int window : {0, 1, 100, 256, 300}) {
    AttentionFixture fixture(
        {.heads = 6, .kv_heads = 2, .dim_k = 64, .dim_v = 64, .window = window}, {700, 80});
    for (int variant = 0; variant < 4; ++variant) {
      AttentionParams params = fixture.params();
      if (variant == 1) params.softcap = 0.7f;
      if (variant == 2) params.sinks = sinks.data();
      if (variant == 3) params.causal = false;
      const std::vector<QuerySpan> spans = {{0, 500, 40}, {1, 79, 1}, {0, 0, 5}, {0, 699, 1}};
      const Floats want = fixture.run(reference_float_kernels(), params, spans, pool);
      const Floats got = fixture.run(fast(), params, spans, pool);
      EXPECT_LT(greatest_difference(got, want), 4e-6) << window << " " << variant;
    }
  }
}

// The promise of attention.h: a query's result depends on its sequence and position only.
TEST_P(AttentionTable, GivesAQueryTheSameBitsInDecodeChunkAndBatchOnAnyNumberOfThreads) {
  struct Case {
    KvFormats formats;
    int window, dim;
  };
  std::vector<Case> cases = {{KvFormat::kF16, 400, 64},
                             {{KvFormat::kInt8, KvFormat::kF16}, 400, 64},
                             {{KvFormat::kF16, KvFormat::kInt4}, 0, 40}};
  // Plain loops read every format alike, and take most of a minute for all of them.
  const bool is_plain = &fast() == &reference_q8_float_kernels();
  if (!is_plain) {
    for (const KvFormat format : all_kv_formats()) cases.push_back({format, 0, 64});
  }
  for (const auto& [formats, window, dim] : cases) {
    AttentionFixture fixture({.heads = 14,
                              .kv_heads = 2,
                              .dim_k = dim,
                              .dim_v = dim,
                              .formats = formats,
                              .window = window},
                             {900, 333, 16, 600});
    const AttentionParams params = fixture.params();
    ThreadPool one(1);
    const auto row = static_cast<std::size_t>(14 * dim);
    const Floats whole = fixture.run(fast(), params, {{0, 0, 900}}, one);
    const auto expect_rows = [&](const Floats& got, std::size_t at, int first, int count,
                                 const char* what) {
      const auto want = whole.begin() + static_cast<std::ptrdiff_t>(row) * first;
      const auto from = got.begin() + static_cast<std::ptrdiff_t>(row * at);
      EXPECT_TRUE(std::equal(from, from + static_cast<std::ptrdiff_t>(row) * count, want))
          << what << " at " << first << ", window " << fixture.shape().window << ", "
          << kv_format_info(fixture.shape().formats.k).name;
    };
    for (int threads : {1, 2, 5}) {
      ThreadPool pool(threads);
      for (int token : {0, 15, 16, 255, 256, 700, 899})
        expect_rows(fixture.run(fast(), params, {{0, token, 1}}, pool), 0, token, 1, "decode");
      for (int first : {0, 230, 600, 860})
        expect_rows(fixture.run(fast(), params, {{0, first, 40}}, pool), 0, first, 40, "chunk");
      for (int count : {2, 3, 5, 6, 7, 8, 13})
        expect_rows(fixture.run(fast(), params, {{0, 800, count}}, pool), 0, 800, count, "few");
      const std::vector<QuerySpan> mix = {
          {1, 332, 1}, {0, 837, 1}, {2, 0, 16}, {3, 400, 200}, {0, 511, 3}};
      const Floats mixed = fixture.run(fast(), params, mix, pool);
      expect_rows(mixed, 1, 837, 1, "batch");
      expect_rows(mixed, 1 + 1 + 16 + 200, 511, 3, "batch");
    }
  }
}

TEST_P(AttentionTable, DividesALongDecodeAmongThreads) {
  AttentionFixture fixture({.heads = 14, .kv_heads = 2}, {6000});
  ThreadPool one(1), four(4);
  const Floats straight = fixture.run(fast(), fixture.params(), {{0, 5999, 1}}, one);
  EXPECT_TRUE(fixture.scratch().plan().own().divided.empty());
  const Floats divided = fixture.run(fast(), fixture.params(), {{0, 5999, 1}}, four);
  EXPECT_EQ(fixture.scratch().plan().own().divided.size(), 2u);
  EXPECT_GE(fixture.scratch().plan().own().num_chunks(), 8);
  EXPECT_EQ(straight, divided);
  // Two threads have splits enough to read both KV heads together.
  ThreadPool two(2);
  EXPECT_EQ(straight, fixture.run(fast(), fixture.params(), {{0, 5999, 1}}, two));
  ASSERT_EQ(fixture.scratch().plan().own().tiles.size(), 1u);
  EXPECT_EQ(fixture.scratch().plan().own().tiles[0].num_kv_heads, 2);
  EXPECT_EQ(fixture.scratch().plan().own().divided.size(), 1u);
  const Floats want = fixture.run(reference_float_kernels(), fixture.params(), {{0, 5999, 1}}, one);
  EXPECT_LT(greatest_difference(divided, want), 2e-6);
}

// Eight heads of seven rows are more than a tile holds; odd dimensions are converted head by head.
TEST_P(AttentionTable, JoinsKvHeadsOfAnyNumberAndSize) {
  ThreadPool one(1), many(16);
  for (const AttentionShape shape : {AttentionShape{56, 8, 64, 64}, AttentionShape{9, 3, 20, 12}}) {
    AttentionFixture fixture(shape, {2100, 40});
    const std::vector<QuerySpan> spans = {{0, 2099, 1}, {1, 39, 1}};
    const Floats joined = fixture.run(fast(), fixture.params(), spans, one);
    EXPECT_GT(fixture.scratch().plan().own().tiles[0].num_kv_heads, 1);
    EXPECT_EQ(joined, fixture.run(fast(), fixture.params(), spans, many));
    EXPECT_EQ(fixture.scratch().plan().own().tiles[0].num_kv_heads, 1);
  }
}

TEST_P(AttentionTable, DoesNotTouchBlocksBehindTheWindow) {
  AttentionFixture fixture({.window = 40}, {600});
  ThreadPool pool(1);
  const Floats before = fixture.run(fast(), fixture.params(), {{0, 570, 20}}, pool);
  for (int b = 0; b < (570 + 1 - 40) / kKvBlockSize; ++b) fixture.entry(0, b) = -1;
  EXPECT_EQ(fixture.run(fast(), fixture.params(), {{0, 570, 20}}, pool), before);
}

TEST_P(AttentionTable, FollowsTheTableWhenABlockIsShared) {
  AttentionFixture fixture({}, {64, 64});
  ThreadPool pool(1);
  for (int b = 0; b < 4; ++b) fixture.entry(1, b) = fixture.entry(0, b);
  const Floats both = fixture.run(fast(), fixture.params(), {{0, 63, 1}, {1, 63, 1}}, pool);
  // Same keys and values, other queries.
  EXPECT_GT(
      greatest_difference({both.begin(), both.begin() + 256}, {both.begin() + 256, both.end()}),
      1e-3);
  EXPECT_TRUE(std::all_of(both.begin(), both.end(), [](float x) { return std::isfinite(x); }));
}

TEST_P(AttentionTable, HugeScoresNeitherOverflowNorVanish) {
  AttentionFixture fixture({}, {400});
  ThreadPool pool(1);
  AttentionParams params = fixture.params();
  params.scale = 1000;
  const Floats want = fixture.run(reference_float_kernels(), params, {{0, 399, 1}}, pool);
  const Floats got = fixture.run(fast(), params, {{0, 399, 1}}, pool);
  EXPECT_LT(greatest_difference(got, want), 0.05);
}

}  // namespace
}  // namespace dunlin
