#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace dunlin {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> random_row(unsigned seed, std::size_t size, float scale = 3) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> row(size);
  for (float& x : row) x = std::round(normal(random) * 32) / 32;  // with ties
  return row;
}

// Steps 4 to 7 of sampler.h as they are written there, by a full sort.
std::vector<std::pair<TokenId, Weight>> by_the_book(const std::vector<float>& row,
                                                    const SamplingParams& params) {
  const float max = row_max(row);
  std::vector<Weight> weights(row.size());
  row_weights(row, max, params.temperature, weights);
  std::vector<Candidate> kept;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (params.min_p > 0 && !(row[i] >= max + params.temperature * std::log(params.min_p))) {
      continue;
    }
    kept.push_back({row[i], static_cast<TokenId>(i)});
  }
  std::sort(kept.begin(), kept.end(), ranks_before);
  if (params.top_k > 0 && kept.size() > static_cast<std::size_t>(params.top_k)) {
    kept.resize(static_cast<std::size_t>(params.top_k));
  }
  std::uint64_t total = 0;
  for (const auto& c : kept) total += weights[static_cast<std::size_t>(c.id)];
  if (params.top_p < 1) {
    const auto target = static_cast<std::uint64_t>(
        std::ceil(static_cast<double>(params.top_p) * static_cast<double>(total)));
    std::uint64_t sum = 0;
    std::size_t count = 0;
    while (sum < target) sum += weights[static_cast<std::size_t>(kept[count++].id)];
    kept.resize(std::max<std::size_t>(count, 1));
  }
  std::vector<std::pair<TokenId, Weight>> result;
  for (const auto& c : kept) {
    const Weight w = weights[static_cast<std::size_t>(c.id)];
    if (w > 0) result.emplace_back(c.id, w);
  }
  std::sort(result.begin(), result.end());
  return result;
}

TEST(Sampler, KeepsExactlyTheSetOfTopKTopPAndMinP) {
  for (const std::size_t size : {3, 100, 5000}) {
    Sampler sampler(static_cast<int>(size));
    for (unsigned seed = 0; seed < 6; ++seed) {
      const auto row = random_row(seed, size, seed < 3 ? 3.0f : 0.5f);
      for (const int top_k : {0, 1, 7, 90, 3000}) {
        for (const float top_p : {1e-6f, 0.3f, 0.9f, 0.999f, 1.0f}) {
          for (const float min_p : {0.0f, 0.01f, 0.5f, 1.0f}) {
            SamplingParams params;
            params.temperature = 0.8f;
            params.top_k = top_k;
            params.top_p = top_p;
            params.min_p = min_p;
            ASSERT_EQ(sampler.distribution(row, params), by_the_book(row, params))
                << "size " << size << " seed " << seed << " k " << top_k << " p " << top_p
                << " min_p " << min_p;
          }
        }
      }
    }
  }
}

TokenId draw(Sampler& sampler, std::vector<float> row, const SamplingParams& params,
             std::uint64_t position) {
  SampleInput input;
  input.params = &params;
  input.position = position;
  return sampler.sample(row, {}, input, nullptr).value();
}

// Step 8.
TokenId by_the_book(const std::vector<std::pair<TokenId, Weight>>& kept,
                    const SamplingParams& params, std::uint64_t position) {
  unsigned __int128 total = 0;
  for (const auto& [id, weight] : kept) total += weight;
  const double u = uniform_at(params.seed, params.choice_idx, position);
  const auto target =
      static_cast<std::uint64_t>(static_cast<std::uint64_t>(u * 0x1p53) * total >> 53);
  std::uint64_t sum = 0;
  for (const auto& [id, weight] : kept) {
    sum += weight;
    if (sum > target) return id;
  }
  return -1;
}

// Rows of which some blocks may be left unweighed, or seem so: `name` says what decides.
struct ShapedRow {
  std::string name;
  std::vector<float> row;
};
std::vector<ShapedRow> shaped_rows(std::size_t size, float temperature) {
  std::mt19937 random(static_cast<unsigned>(size));
  std::normal_distribution<float> normal;
  std::vector<ShapedRow> rows;
  const auto add = [&](std::string name, auto value) {
    ShapedRow shaped{std::move(name), std::vector<float>(size)};
    for (std::size_t i = 0; i < size; ++i) shaped.row[i] = value(i);
    rows.push_back(std::move(shaped));
  };
  const auto head = [&](std::size_t i, float low, float high) { return i % 997 == 5 ? high : low; };
  add("peaked", [&](std::size_t i) { return 3 * normal(random) + head(i, 0, 12); });
  add("flat", [&](std::size_t) { return 0.5f * normal(random); });
  add("equal", [&](std::size_t) { return 1.0f; });
  add("one for all", [&](std::size_t i) { return i == size / 2 ? 40.0f : 0.0f; });
  add("masked", [&](std::size_t i) { return i % 7 == 0 ? normal(random) * 9 : -kInf; });
  // A plateau on either side of each depth at which weighing stops, alone in its blocks and mixed.
  for (const float depth : {8.99f, 9.0f, 9.01f, 14.99f, 15.01f, 20.0f, 21.4f, 21.6f, 22.1f}) {
    const float low = -depth * temperature;
    add("plateau " + std::to_string(depth), [&](std::size_t i) { return head(i, low, 0); });
    add("steps " + std::to_string(depth), [&](std::size_t i) {
      return i < 16 ? -static_cast<float>(i) * temperature : i % 64 == 63 ? low : -kInf;
    });
  }
  return rows;
}

TEST(Sampler, DrawsWhatTheRuleSaysThoughItWeighsOnlyBlocksThatMatter) {
  for (const std::size_t size : {40, 3001, 12000}) {
    Sampler sampler(static_cast<int>(size));
    for (const float temperature : {0.3f, 1.0f}) {
      if (size > 10000 && temperature < 1) continue;  // sorting these takes long
      for (const auto& [name, row] : shaped_rows(size, temperature)) {
        SamplingParams params;
        params.temperature = temperature;
        for (const float top_p : {0.2f, 0.95f, 0.9999f, 1.0f}) {
          params.top_p = top_p;
          const auto kept = by_the_book(row, params);
          ASSERT_EQ(sampler.distribution(row, params), kept)
              << name << " of " << size << " at " << temperature << ", p " << top_p;
          for (std::uint64_t position = 0; position < 12; ++position) {
            ASSERT_EQ(draw(sampler, row, params, position), by_the_book(kept, params, position))
                << name << " of " << size << " at " << temperature << ", p " << top_p;
          }
        }
      }
    }
  }
}

// The sum of the best tokens meets top_p exactly, or misses it by one part in 2^23: tokens in
// unweighed blocks then decide where the cut is.
TEST(Sampler, CutsWhereTheRuleSaysAtTheEdgesOfTokens) {
  constexpr std::size_t kSize = 5000;
  Sampler sampler(kSize);
  std::vector<float> row(kSize);
  for (const float low : {-8.0f, -10.0f, -14.0f, -16.0f, -20.0f}) {
    for (std::size_t i = 0; i < kSize; ++i) {
      row[i] = i % 250 == 7 ? -0.25f * static_cast<float>(i / 250) : low;
    }
    SamplingParams params;
    const auto all = by_the_book(row, params);
    double total = 0;
    for (const auto& [id, weight] : all) total += weight;
    double sum = 0;
    for (std::size_t i = 7; i < kSize; i += 250) {
      sum += all[i].second;
      const auto edge = static_cast<float>(sum / total);
      for (const float top_p : {std::nextafter(edge, 0.0f), edge, std::nextafter(edge, 1.0f)}) {
        params.top_p = std::min(top_p, 1.0f);
        ASSERT_EQ(sampler.distribution(row, params), by_the_book(row, params))
            << low << " at " << i;
      }
    }
  }
}

TEST(Sampler, TopKBreaksTiesByTheLowestId) {
  Sampler sampler(6);
  SamplingParams params;
  params.top_k = 2;
  const std::vector<float> row = {0, 5, 1, 5, 5, 5};
  const auto kept = sampler.distribution(row, params);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].first, 1);
  EXPECT_EQ(kept[1].first, 3);
}

// Pearson's statistic against the stated probabilities; cells below 5 expected draws are joined.
void expect_fits(const std::map<TokenId, int>& counts, const std::map<TokenId, double>& expected,
                 int num_draws) {
  double statistic = 0;
  int cells = 0;
  double rest_expected = 0;
  double rest_count = 0;
  for (const auto& [id, p] : expected) {
    const auto it = counts.find(id);
    const double count = it == counts.end() ? 0 : it->second;
    if (p * num_draws < 5) {
      rest_expected += p * num_draws;
      rest_count += count;
      continue;
    }
    statistic += (count - p * num_draws) * (count - p * num_draws) / (p * num_draws);
    ++cells;
  }
  if (rest_expected > 0) {
    statistic += (rest_count - rest_expected) * (rest_count - rest_expected) / rest_expected;
    ++cells;
  }
  for (const auto& [id, count] : counts) {
    EXPECT_TRUE(expected.contains(id)) << "drew " << id << ", which has no probability";
  }
  // Wilson and Hilferty's normal approximation of the chi-square quantile at 1 - 1e-4.
  const double f = cells - 1;
  const double h = 2.0 / (9 * f);
  const double limit = f * std::pow(1 - h + 3.72 * std::sqrt(h), 3);
  EXPECT_LT(statistic, limit) << cells << " cells";
  EXPECT_GT(cells, 3);
}

TEST(Sampler, DrawsFollowTheSoftmaxAtEachTemperature) {
  const std::vector<float> row = {0.5f, -1, 2, 1.5f, 0, -2, 1, 0.25f, -0.5f, 3};
  Sampler sampler(static_cast<int>(row.size()));
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    SamplingParams params;
    params.temperature = temperature;
    params.seed = 12;
    std::map<TokenId, double> expected;
    double total = 0;
    for (const float x : row) total += std::exp(x / temperature);
    for (std::size_t i = 0; i < row.size(); ++i) {
      expected[static_cast<TokenId>(i)] = std::exp(row[i] / temperature) / total;
    }
    std::map<TokenId, int> counts;
    for (int i = 0; i < 40000; ++i) ++counts[draw(sampler, row, params, std::uint64_t(i))];
    expect_fits(counts, expected, 40000);
  }
}

TEST(Sampler, DrawsFollowTheRenormalisedFilters) {
  const auto row = random_row(9, 200, 1);
  Sampler sampler(200);
  SamplingParams params;
  params.seed = 99;
  params.top_p = 0.7f;
  for (const int top_k : {0, 40}) {
    params.top_k = top_k;
    const auto kept = by_the_book(row, params);
    double total = 0;
    for (const auto& [id, weight] : kept) total += weight;
    std::map<TokenId, double> expected;
    for (const auto& [id, weight] : kept) expected[id] = weight / total;
    std::map<TokenId, int> counts;
    for (int i = 0; i < 40000; ++i) ++counts[draw(sampler, row, params, std::uint64_t(i))];
    expect_fits(counts, expected, 40000);
  }
}

TEST(Sampler, TheSameSeedChoiceAndPositionDrawTheSameToken) {
  const auto row = random_row(4, 500, 1);
  Sampler a(500);
  Sampler b(500);
  SamplingParams params;
  params.seed = 7;
  std::vector<TokenId> first, second, other_seed, other_choice;
  for (std::uint64_t i = 0; i < 50; ++i) first.push_back(draw(a, row, params, i));
  for (std::uint64_t i = 50; i-- > 0;) second.insert(second.begin(), draw(b, row, params, i));
  params.choice_idx = 1;
  for (std::uint64_t i = 0; i < 50; ++i) other_choice.push_back(draw(a, row, params, i));
  params.choice_idx = 0;
  params.seed = 8;
  for (std::uint64_t i = 0; i < 50; ++i) other_seed.push_back(draw(a, row, params, i));
  EXPECT_EQ(first, second);
  EXPECT_NE(first, other_choice);
  EXPECT_NE(first, other_seed);
}

TEST(Sampler, DrawsTheSameWithMaximaGivenAndFound) {
  constexpr std::size_t kSize = 1003;
  Sampler sampler(kSize);
  for (unsigned seed = 0; seed < 60; ++seed) {
    auto row = random_row(seed, kSize, seed % 2 == 0 ? 3.0f : 30.0f);
    if (seed % 7 == 0) row[5] = NAN;
    if (seed % 11 == 0) row[900] = kInf;
    std::vector<float> maxima(maxima_size(kSize));
    row_maxima(row, maxima);
    SamplingParams params;
    params.temperature = 0.4f * static_cast<float>(seed % 4);
    params.top_p = seed % 3 == 0 ? 0.9f : 1.0f;
    params.top_k = seed % 5 == 0 ? 20 : 0;
    if (seed % 4 == 3) params.logit_bias = {{17, 40.0f}};  // the given maxima hold no more
    SampleInput input;
    input.params = &params;
    input.position = seed;
    std::vector<float> first = row, second = row;
    const auto found = sampler.sample(first, {}, input, nullptr);
    ASSERT_TRUE(found);
    EXPECT_EQ(sampler.sample(second, maxima, input, nullptr), found) << seed;
  }
}

TEST(Sampler, IsGreedyAtTemperatureZeroWithTiesToTheLowestId) {
  Sampler sampler(5);
  SamplingParams params;
  params.temperature = 0;
  EXPECT_EQ(draw(sampler, {1, 7, 3, 7, 7}, params, 0), 1);
  params.temperature = 1e-9f;
  EXPECT_EQ(draw(sampler, {1, 7, 3, 7, 7}, params, 0), 1);
}

TEST(Sampler, RefusesWhereNoTokenMayCome) {
  Sampler sampler(3);
  for (const float temperature : {0.0f, 1.0f}) {
    SamplingParams params;
    params.temperature = temperature;
    SampleInput input;
    input.params = &params;
    std::vector<float> nothing = {NAN, -kInf, NAN};
    EXPECT_FALSE(sampler.sample(nothing, {}, input, nullptr).has_value());
    const std::vector<TokenId> all = {0, 1, 2};
    input.forbidden = all;
    std::vector<float> row = {1, 2, 3};
    EXPECT_FALSE(sampler.sample(row, {}, input, nullptr).has_value());
  }
}

TEST(Sampler, IgnoresNanAndFollowsInfinity) {
  Sampler sampler(4);
  SamplingParams params;
  for (std::uint64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(draw(sampler, {NAN, 1, NAN, -kInf}, params, i), 1);
    EXPECT_EQ(draw(sampler, {NAN, 1, kInf, -kInf}, params, i), 2);
  }
}

TEST(Sampler, BiasForcesAndForbidsTokens) {
  Sampler sampler(4);
  SamplingParams params;
  params.logit_bias = {{2, 100}, {3, -100}};
  for (std::uint64_t i = 0; i < 50; ++i) EXPECT_EQ(draw(sampler, {0, 0, 0, 50}, params, i), 2);
}

class EvenTokens : public TokenConstraint {
 public:
  void fill_bitmask(std::span<std::uint32_t> bitmask) override {
    std::fill(bitmask.begin(), bitmask.end(), 0x55555555u);
  }
  void accept(TokenId) override {}
  void rollback(int) override {}
};

TEST(Sampler, StaysWithinAConstraintAndReportsTheRawLogprobs) {
  Sampler sampler(4);
  SamplingParams params;
  params.temperature = 0;
  params.num_logprobs = 1;
  EvenTokens constraint;
  SampleInput input;
  input.params = &params;
  input.constraint = &constraint;
  std::vector<float> row = {1, 4, 2, 3};
  TokenLogprobs logprobs;
  EXPECT_EQ(sampler.sample(row, {}, input, &logprobs), 2);
  EXPECT_EQ(logprobs.rank, 2);
  ASSERT_EQ(logprobs.top.size(), 1u);
  EXPECT_EQ(logprobs.top[0].first, 1) << "the model's own favourite";
  const double sum = std::exp(1.0) + std::exp(4.0) + std::exp(2.0) + std::exp(3.0);
  EXPECT_NEAR(logprobs.logprob, 2 - std::log(sum), 1e-5);
}

}  // namespace
}  // namespace dunlin
