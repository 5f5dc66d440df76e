#include "engine/step_budget.h"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace dunlin {
namespace {

constexpr int kNoLimit = std::numeric_limits<int>::max();

// A machine whose steps take what the model says, give or take `noise`.
struct Machine {
  double noise = 0.05;
  double position_s = 4e-7;
  int late_every = 0;  // 0: never
  int num_steps = 0;
  std::mt19937 random{1};

  double step(const StepWork& work) {
    const double exact = 0.01 + 0.002 * work.num_decode_tokens + 0.001 * work.num_prompt_tokens +
                         position_s * work.num_attended;
    const bool is_late = late_every > 0 && ++num_steps % late_every == 0;
    return (is_late ? 1.5 : 1) * exact *
           std::uniform_real_distribution(1 - noise, 1 + noise)(random);
  }
};

// Prefills a prompt beside streams; the times of the steps.
std::vector<double> prefill(StepBudget& budget, Machine& machine, int num_streams, int length) {
  std::vector<double> times;
  for (int begin = 0; begin < length;) {
    budget.begin(num_streams);
    const int n = std::min(length - begin, budget.num_tokens_left(begin));
    EXPECT_GE(n, std::min(length - begin, StepBudget::kMinPromptTokens));
    budget.spend(begin, n);
    StepWork work{.num_decode_tokens = num_streams};
    work.add_prompt(begin, n);
    times.push_back(machine.step(work));
    budget.observe(work, times.back());
    begin += n;
  }
  return times;
}

void decode(StepBudget& budget, Machine& machine, int num_streams, int num_steps) {
  for (int i = 0; i < num_steps; ++i) {
    budget.begin(num_streams);
    const StepWork work{.num_decode_tokens = num_streams};
    budget.observe(work, machine.step(work));
  }
}

double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

TEST(StepBudget, WithoutTargetsThereIsNoLimit) {
  StepBudget budget({});
  budget.begin(8);
  EXPECT_EQ(budget.num_tokens_left(100), kNoLimit);
}

TEST(StepBudget, WithoutStreamsThereIsNoLimit) {
  StepBudget budget({.itl_s = 0.05});
  budget.begin(0);
  EXPECT_EQ(budget.num_tokens_left(0), kNoLimit);
}

TEST(StepBudget, ALongPromptKeepsTheStepsAtTheTarget) {
  // Eight streams take 26 ms a step; the target is three times that.
  StepBudget budget({.itl_s = 0.078});
  Machine machine;
  decode(budget, machine, 8, 50);
  const auto times = prefill(budget, machine, 8, 8192);
  EXPECT_LE(percentile(times, 0.99), 1.2 * 0.078);
  EXPECT_GE(percentile(times, 0.5), 0.85 * 0.078) << "the time is used";
}

TEST(StepBudget, LaterChunksOfALongPromptAreSmaller) {
  StepBudget budget({.itl_s = 0.226});
  Machine machine{.noise = 0};
  decode(budget, machine, 8, 50);
  for (int i = 0; i < 8; ++i) prefill(budget, machine, 8, 8192);  // no step is late, it turns out
  budget.begin(8);
  EXPECT_NEAR(budget.num_tokens_left(8000), 200 / (1 + 8 * 0.4), 5);
  EXPECT_NEAR(budget.num_tokens_left(0), 193, 20);
}

TEST(StepBudget, FollowsAMachineThatBecomesSlower) {
  StepBudget budget({.itl_s = 0.078});
  Machine machine;
  decode(budget, machine, 8, 50);
  prefill(budget, machine, 8, 4000);
  machine.position_s *= 4;
  prefill(budget, machine, 8, 4000);
  const auto times = prefill(budget, machine, 8, 4000);
  EXPECT_LE(percentile(times, 0.95), 1.2 * 0.078);
}

// Every thirtieth step is half as long again, as beside another process.
TEST(StepBudget, PlansForStepsThatAreLate) {
  StepBudget budget({.itl_s = 0.1});
  Machine machine;
  machine.late_every = 30;
  decode(budget, machine, 8, 50);
  prefill(budget, machine, 8, 20'000);
  const std::vector<double> times = prefill(budget, machine, 8, 20'000);
  EXPECT_LT(percentile(times, 0.99), 1.2 * 0.1);
  EXPECT_GT(percentile(times, 0.5), 0.06);
}

TEST(StepBudget, OneStepOutOfLineChangesLittle) {
  StepBudget budget({.itl_s = 0.078});
  Machine machine{.noise = 0};
  decode(budget, machine, 8, 50);
  prefill(budget, machine, 8, 4000);
  budget.begin(8);
  const int before = budget.num_tokens_left(0);
  StepWork work{.num_decode_tokens = 8};
  work.add_prompt(0, before);
  budget.observe(work, 30);
  budget.begin(8);
  EXPECT_GT(budget.num_tokens_left(0), before / 3);
}

TEST(StepBudget, AnImpossibleTargetStillLetsPromptsAdvance) {
  StepBudget budget({.itl_s = 1e-6});
  Machine machine;
  decode(budget, machine, 8, 50);
  budget.begin(8);
  EXPECT_EQ(budget.num_tokens_left(0), StepBudget::kMinPromptTokens);
  budget.spend(0, StepBudget::kMinPromptTokens);
  EXPECT_EQ(budget.num_tokens_left(0), 0) << "the first prompt of the step only";
}

class Targets : public ::testing::Test {
 protected:
  // 1 ms a prompt token, 26 ms a step of eight streams, learnt already.
  StepBudget learnt(StepTargets targets) {
    StepBudget budget(targets);
    Machine machine{.noise = 0, .position_s = 0};
    decode(budget, machine, 8, 50);
    prefill(budget, machine, 8, 30'000);  // until it is clear that no step is late
    return budget;
  }
  static int tokens_for(StepBudget& budget, int prompt, double age_s) {
    budget.begin(8);
    budget.expect_prompt(0, prompt, age_s);
    return budget.num_tokens_left(0);
  }
};

TEST_F(Targets, TheFirstTokenAloneTakesWhatItNeeds) {
  auto budget = learnt({.ttft_s = 2.0});
  const int relaxed = tokens_for(budget, 200, 0);
  const int pressed = tokens_for(budget, 200, 1.2);
  EXPECT_EQ(relaxed, StepBudget::kMinPromptTokens);
  // 200 ms of work in the 400 ms that are planned: half of each step.
  EXPECT_NEAR(pressed, 26, 7);
  EXPECT_EQ(tokens_for(budget, 200, 3), kNoLimit) << "late";
}

TEST_F(Targets, WithBothTheFirstTokenStretchesTheStepButNotBeyondTwice) {
  auto budget = learnt({.itl_s = 0.078, .ttft_s = 2.0});
  EXPECT_NEAR(tokens_for(budget, 200, 0), 52, 3) << "the inter-token target";
  // 700 ms of work in 800 ms: seven eighths of each step, but steps end at 2 * 78 ms.
  EXPECT_NEAR(tokens_for(budget, 700, 0.8), 130, 10);
  EXPECT_NEAR(tokens_for(budget, 700, 5), 52, 3) << "late: streams win";
  EXPECT_NEAR(tokens_for(budget, 5000, 0), 52, 3) << "impossible: streams win";
}

}  // namespace
}  // namespace dunlin
