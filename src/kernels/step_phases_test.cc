// The phases between linear layers: embed, add_norm, gated_rows over the rows of a step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"
#include "kernels/activation.h"
#include "kernels/embed.h"
#include "kernels/norm.h"

namespace dunlin {
namespace {

using Floats = std::vector<float>;
constexpr std::int64_t kTokens = 70, kCols = 608;  // more than one chunk

Floats random_floats(std::uint64_t seed, std::int64_t n) {
  Floats x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(4 * uniform_at(seed, 0, i) - 2);
  return x;
}
const float* row(const Floats& x, std::int64_t token) { return x.data() + token * kCols; }

TEST(AddNorm, AddsThenNormsEachRowAndStoresItForTheNextLayer) {
  const Floats weight = random_floats(1, kCols), before = random_floats(2, kTokens * kCols);
  const Floats delta = random_floats(3, kTokens * kCols);
  Activations activations;
  activations.reserve(kTokens, kCols, true);
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    Floats residual = before, changed = delta, normed(before.size());
    add_norm(pool, Isa::kReference,
             {.residual = residual.data(),
              .delta = changed.data(),
              .norm = {NormType::kRms, weight.data(), nullptr, 1e-5f},
              .n = kCols,
              .normed = normed.data()},
             kTokens, &activations);
    ASSERT_EQ(activations.cols(), kCols);
    for (std::int64_t t = 0; t < kTokens; ++t) {
      Floats sum(kCols), want(kCols);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = row(before, t)[i] + row(delta, t)[i];
      rms_norm(Isa::kReference, sum.data(), weight.data(), 1e-5f, kCols, want.data());
      ASSERT_TRUE(std::equal(sum.begin(), sum.end(), row(residual, t))) << t;
      ASSERT_TRUE(std::equal(want.begin(), want.end(), row(normed, t))) << t;
      ASSERT_TRUE(std::equal(want.begin(), want.end(), activations.values(t))) << t;
    }
  }
}

TEST(AddNorm, NormsTheDeltaFirstWhereItHasAWeightAndMayWriteOverIt) {
  const Floats weight = random_floats(4, kCols), delta_weight = random_floats(5, kCols);
  const Floats before = random_floats(6, kTokens * kCols),
               delta = random_floats(7, kTokens * kCols);
  for (Isa isa : supported_isas()) {
    ThreadPool pool(2);
    Floats residual = before, buffer = delta;
    add_norm(pool, isa,
             {.residual = residual.data(),
              .delta = buffer.data(),
              .delta_norm = {NormType::kRms, delta_weight.data(), nullptr, 1e-6f},
              .norm = {NormType::kRms, weight.data(), nullptr, 1e-6f},
              .n = kCols,
              .normed = buffer.data()},
             kTokens, nullptr);
    for (std::int64_t t : {0, 1, 69}) {
      Floats sum(kCols), want(kCols);
      rms_norm(isa, row(delta, t), delta_weight.data(), 1e-6f, kCols, sum.data());
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += row(before, t)[i];
      rms_norm(isa, sum.data(), weight.data(), 1e-6f, kCols, want.data());
      EXPECT_TRUE(std::equal(sum.begin(), sum.end(), row(residual, t))) << isa_name(isa);
      EXPECT_TRUE(std::equal(want.begin(), want.end(), row(buffer, t))) << isa_name(isa);
    }
  }
}

TEST(AddNorm, WithoutADeltaLeavesTheResidualAlone) {
  ThreadPool pool(1);
  const Floats before = random_floats(8, kCols);
  Floats residual = before, normed(before.size());
  add_norm(pool, Isa::kPortable,
           {.residual = residual.data(),
            .norm = {.type = NormType::kRms},
            .n = kCols,
            .normed = normed.data()},
           1, nullptr);
  EXPECT_EQ(residual, before);
  double square = 0;
  for (float x : normed) square += double{x} * x;
  EXPECT_NEAR(square / kCols, 1, 1e-5);
}

TEST(AddNorm, ScalesTheDeltaAndCopiesWhereThereIsNoNorm) {
  ThreadPool pool(1);
  const Floats before = random_floats(10, kCols), delta = random_floats(11, kCols);
  Floats residual = before, buffer = delta, want = before;
  for (std::size_t i = 0; i < want.size(); ++i) want[i] += 0.25f * delta[i];
  add_norm(pool, Isa::kPortable,
           {.residual = residual.data(),
            .delta = buffer.data(),
            .delta_scale = 0.25f,
            .n = kCols,
            .normed = buffer.data()},
           1, nullptr);
  EXPECT_EQ(residual, want);
  EXPECT_EQ(buffer, want);
}

TEST(LayerNorm, TakesMeanAndDeviationAwayThenScalesAndShifts) {
  for (const std::int64_t n : {1, 15, 16, 17, 100, 577}) {
    const Floats x = random_floats(12, n), weight = random_floats(13, n),
                 bias = random_floats(14, n);
    double mean = 0, variance = 0;
    for (const float v : x) mean += v / static_cast<double>(n);
    for (const float v : x) variance += (v - mean) * (v - mean) / static_cast<double>(n);
    Floats plain(x.size()), shifted = x;
    normalize(best_isa(), {NormType::kLayer, nullptr, nullptr, 1e-5f}, x.data(), n, plain.data());
    normalize(best_isa(), {NormType::kLayer, weight.data(), bias.data(), 1e-5f}, shifted.data(), n,
              shifted.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = (x[i] - mean) / std::sqrt(variance + 1e-5);
      EXPECT_NEAR(plain[i], want, 2e-5) << n;
      EXPECT_NEAR(shifted[i], want * weight[i] + bias[i], 4e-5) << n;
    }
  }
}

TEST(GatedRows, GatesRowsOfAFusedProductAndStoresThem) {
  ThreadPool pool(3);
  // gate and up side by side, as one fused product leaves them.
  const Floats both = random_floats(9, kTokens * 2 * kCols);
  Floats out = both;
  Activations activations;
  activations.reserve(kTokens, kCols, true);
  gated_rows(pool, Isa::kReference, GateFunction::kSilu, out.data(), out.data() + kCols, 2 * kCols,
             kCols, kTokens, &activations);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    Floats want(kCols);
    const float* gate = both.data() + t * 2 * kCols;
    gated(Isa::kReference, GateFunction::kSilu, gate, gate + kCols, kCols, want.data());
    ASSERT_TRUE(std::equal(want.begin(), want.end(), out.data() + t * 2 * kCols)) << t;
    ASSERT_TRUE(std::equal(want.begin(), want.end(), activations.values(t))) << t;
    ASSERT_TRUE(std::equal(gate + kCols, gate + 2 * kCols, out.data() + t * 2 * kCols + kCols));
  }
}

TEST(Embed, GivesScaledRowsOfTheTable) {
  ThreadPool pool(2);
  const Floats table = random_floats(10, 40 * kCols);
  TensorView view;
  view.dtype = DType::kF32;
  view.rank = 2;
  view.shape = {40, kCols, 1, 1};
  view.data = reinterpret_cast<const std::byte*>(table.data());
  const PackedMatrix packed = PackedMatrix::pack(view, {}, Isa::kReference, pool).value();
  const std::vector<std::int32_t> ids = {39, 0, 17, 17};
  Floats out(ids.size() * kCols);
  embed(pool, packed, ids, 2.5f, out.data());
  for (std::size_t t = 0; t < ids.size(); ++t)
    for (std::size_t i = 0; i < kCols; ++i)
      ASSERT_EQ(out[t * kCols + i], 2.5f * row(table, ids[t])[i]) << t << " " << i;
}

}  // namespace
}  // namespace dunlin
