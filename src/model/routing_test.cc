#include "model/routing.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>

namespace dunlin {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

struct Routed {
  std::vector<std::int32_t> experts;
  std::vector<float> weights;
};

Routed route_token(MoeConfig config, std::vector<float> logits,
                   const std::vector<float>& bias = {}) {
  config.num_experts = static_cast<int>(logits.size());
  const auto k = static_cast<std::size_t>(config.experts_per_token);
  Routed routed{std::vector<std::int32_t>(k, -1), std::vector<float>(k)};
  route(config, bias.empty() ? nullptr : bias.data(), logits.data(), routed.experts.data(),
        routed.weights.data());
  return routed;
}

// A sigmoid's argument.
float logit(double p) { return static_cast<float>(std::log(p / (1 - p))); }
// A softmax of these gives the numbers back where they sum to 1.
std::vector<float> logs(const std::vector<double>& values) {
  std::vector<float> result;
  for (const double value : values) result.push_back(static_cast<float>(std::log(value)));
  return result;
}

TEST(Routing, SoftmaxOverAllThenTheBestInAscendingOrder) {
  const MoeConfig config{.experts_per_token = 2};
  const Routed routed = route_token(config, logs({0.1, 0.3, 0.15, 0.45}));
  EXPECT_THAT(routed.experts, ElementsAre(1, 3));
  EXPECT_THAT(routed.weights, ElementsAre(FloatNear(0.3f, 1e-6f), FloatNear(0.45f, 1e-6f)));
}

TEST(Routing, NormalisedWeightsAreASoftmaxOfTheChosen) {
  const std::vector<float> logits = {0.5f, -1.0f, 2.0f, 3.5f, 0.1f};
  const Routed normalised =
      route_token({.experts_per_token = 3, .normalize = true, .scale = 2.5f}, logits);
  const Routed chosen = route_token({.experts_per_token = 3,
                                     .scoring = ExpertScoring::kSoftmaxOfChosen,
                                     .normalize = true,
                                     .scale = 2.5f},
                                    logits);
  EXPECT_EQ(normalised.experts, chosen.experts);
  float sum = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(normalised.weights[i], chosen.weights[i], 1e-6f);
    sum += chosen.weights[i];
  }
  EXPECT_NEAR(sum, 2.5f, 1e-6f);
}

TEST(Routing, AmongEqualsTheLowestIsChosen) {
  const Routed routed = route_token({.experts_per_token = 3}, {1, 2, 1, 1, 1, 2});
  EXPECT_THAT(routed.experts, ElementsAre(0, 1, 5));
}

TEST(Routing, ACorrectionBiasChoosesButDoesNotWeigh) {
  const MoeConfig config{.experts_per_token = 1, .scoring = ExpertScoring::kSigmoid};
  const std::vector<float> logits = {logit(0.9), logit(0.6), logit(0.2)};
  EXPECT_THAT(route_token(config, logits).experts, ElementsAre(0));
  const Routed routed = route_token(config, logits, {0, 0, 0.8f});
  EXPECT_THAT(routed.experts, ElementsAre(2));
  EXPECT_THAT(routed.weights, ElementsAre(FloatNear(0.2f, 1e-6f)));
}

TEST(Routing, GroupsAreJudgedByTheirBestOrTheirTwoBest) {
  MoeConfig config{.experts_per_token = 2,
                   .scoring = ExpertScoring::kSigmoid,
                   .num_groups = 2,
                   .groups_per_token = 1};
  const std::vector<float> logits = {logit(0.9), logit(0.1), logit(0.2),
                                     logit(0.8), logit(0.7), logit(0.3)};
  EXPECT_THAT(route_token(config, logits).experts, ElementsAre(0, 2));
  config.two_score_a_group = true;
  EXPECT_THAT(route_token(config, logits).experts, ElementsAre(3, 4));
  // Left out are the groups, also where the bias makes all that is left negative.
  const std::vector<float> low(6, -5.0f);
  EXPECT_THAT(route_token(config, logits, low).experts, ElementsAre(3, 4));
}

TEST(Routing, TwoBestOfGroupsOfOneIsTheOne) {
  const MoeConfig config{
      .experts_per_token = 2, .num_groups = 4, .groups_per_token = 2, .two_score_a_group = true};
  EXPECT_THAT(route_token(config, {1, 4, 2, 3}).experts, ElementsAre(1, 3));
}

TEST(Routing, WhatIsNoNumberShowsInTheWeights) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ExpertScoring scoring :
       {ExpertScoring::kSoftmax, ExpertScoring::kSigmoid, ExpertScoring::kSoftmaxOfChosen}) {
    const Routed routed = route_token({.experts_per_token = 2, .scoring = scoring}, {1, 2, nan, 3});
    bool shows = false;
    for (const float weight : routed.weights) shows = shows || std::isnan(weight);
    EXPECT_TRUE(shows);
    EXPECT_NE(routed.experts[0], routed.experts[1]);
  }
}

TEST(Routing, VanishingSigmoidsNormaliseToZero) {
  const MoeConfig config{
      .experts_per_token = 2, .scoring = ExpertScoring::kSigmoid, .normalize = true};
  const Routed routed = route_token(config, {-200, -200, -200});
  EXPECT_THAT(routed.weights, ElementsAre(0.0f, 0.0f));
}

}  // namespace
}  // namespace dunlin
