// The planner against figures that everybody knows, and against what is really allocated.
#include "engine/memory_plan.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/hf_description.h"
#include "model/registry.h"
#include "support/known_models.h"
#include "support/scratch_folder.h"

namespace dunlin {
namespace {

using testing::HasSubstr;

constexpr double kGiB = 0x1p30;

ModelConfig config_of(const char* config_json) {
  const ScratchFolder folder;
  const std::string file = folder.path() + "/config.json";
  std::ofstream(file) << config_json;
  return *read_config(**HfDescription::open(file));
}

MemoryPlanner planner_of(const ModelConfig& config, const char* format, EngineConfig limits = {}) {
  const bool is_ideal = std::string(format) == "int4";
  return {config,
          is_ideal ? ideal_weight_sizes(config, best_isa(), 4)
                   : weight_sizes(config, best_isa(), *QuantRecipe::find(format)),
          kv_layout(config, KvFormat::kF16), 2, limits};
}

struct KnownKv {
  const char* config;
  std::int64_t bytes_per_token;
  double gib_4k, gib_32k, gib_128k;
};

TEST(MemoryPlan, CountsVotesAndWhatABudgetHolds) {
  const ModelConfig config = config_of(kLlama7bConfig);
  EngineConfig limits{.max_context = 32 << 10};
  const MemoryPlanner full = planner_of(config, "q4_k_m", limits);
  for (const KvPolicyType type : {KvPolicyType::kH2o, KvPolicyType::kSnapKv}) {
    limits.kv_policy = {.type = type, .budget = 2048};
    const MemoryPlanner planner = planner_of(config, "q4_k_m", limits);
    const std::int64_t votes = planner.with_blocks(1000).overhead - full.with_blocks(1000).overhead;
    EXPECT_EQ(votes, 1000 * 32 * 32 * 16 * 4) << "a float for each layer, head and slot";
    const std::int64_t held = type == KvPolicyType::kH2o ? 2048 + 16 : 32 << 10;
    EXPECT_EQ(planner.with_sequences(1, 32 << 10).kv, held * (512 << 10)) << "a prompt is whole";
  }
}

TEST(MemoryPlan, KvCacheOfKnownModels) {
  const KnownKv known[] = {
      {kLlama7bConfig, 512 << 10, 2, 16, 64},
      {kMistral7bConfig, 128 << 10, 0.5, 4, 16},
      {kLlama2_70bConfig, 320 << 10, 1.25, 10, 40},
  };
  for (const KnownKv& model : known) {
    const ModelConfig config = config_of(model.config);
    const MemoryPlanner planner = planner_of(config, "q4_k_m", {.max_context = 128 << 10});
    EXPECT_EQ(planner.layout().bytes_per_token(), model.bytes_per_token);
    const auto gib = [&](int context) {
      return static_cast<double>(planner.with_sequences(1, context).kv) / kGiB;
    };
    EXPECT_DOUBLE_EQ(gib(4 << 10), model.gib_4k);
    EXPECT_DOUBLE_EQ(gib(32 << 10), model.gib_32k);
    EXPECT_DOUBLE_EQ(gib(128 << 10), model.gib_128k);
  }
}

// "14 + 2 + 2 = 18 GB" and "3.5 + 2 + 2 = 7.5 GB": the last 2 is a guess at the rest, which is
// less here.
TEST(MemoryPlan, A7bModelInBf16AndInt4) {
  const ModelConfig config = config_of(kLlama7bConfig);
  const EngineConfig limits{.max_context = 4096, .max_seqs = 1, .max_batch_tokens = 2048};
  const MemoryPlan bf16 = planner_of(config, "bf16", limits).with_sequences(1, 4096);
  const MemoryPlan int4 = planner_of(config, "int4", limits).with_sequences(1, 4096);
  EXPECT_NEAR(static_cast<double>(bf16.weights), 14e9, 0.05 * 14e9);
  EXPECT_NEAR(static_cast<double>(int4.weights), 3.5e9, 0.05 * 3.5e9);
  for (const MemoryPlan& plan : {bf16, int4}) {
    EXPECT_EQ(plan.kv, std::int64_t{2} << 30);
    EXPECT_GT(plan.scratch + plan.overhead, std::int64_t{100} << 20);
    EXPECT_LT(plan.scratch + plan.overhead, 2'000'000'000);
  }
  EXPECT_NEAR(static_cast<double>(bf16.total()), 18e9, 2e9);
  EXPECT_NEAR(static_cast<double>(int4.total()), 7.5e9, 2e9);
}

TEST(MemoryPlan, WithinABudgetUsesItAndNoMore) {
  const ModelConfig config = config_of(kMistral7bConfig);
  const MemoryPlanner planner = planner_of(config, "q4_k_m");
  for (const double gib : {5.0, 6.0, 8.0, 16.0, 64.0}) {
    const auto budget = static_cast<std::int64_t>(gib * kGiB);
    const MemoryPlan plan = planner.within(budget);
    EXPECT_LE(plan.total(), budget);
    EXPECT_GT(plan.total(), budget - 2 * planner.layout().block_bytes());
    const std::int64_t fit = planner.sequences(plan.num_blocks, 4096);
    EXPECT_LE(planner.with_sequences(fit, 4096).total(), budget);
    EXPECT_GT(planner.with_sequences(fit + 1, 4096).total(), budget);
  }
  // Not more than all sequences can use.
  EXPECT_EQ(planner.within(std::int64_t{1} << 50).num_blocks, 64 * planner.blocks_for(32768));
  EXPECT_EQ(planner.within(0).num_blocks, 0);
}

TEST(MemoryPlan, HasNoMoreBlocksThanAPool) {
  const ModelConfig config = config_of(kMistral7bConfig);
  const MemoryPlanner planner =
      planner_of(config, "q4_k_m", {.max_context = 1 << 21, .max_seqs = 4096});
  EXPECT_EQ(planner.within(std::int64_t{1} << 60).num_blocks, kMaxBlocks);
}

TEST(MemoryPlan, RefusesABudgetThatHoldsNoSequenceAndSaysTheNumbers) {
  const ModelConfig config = config_of(kMistral7bConfig);
  const MemoryPlanner planner = planner_of(config, "q4_k_m", {.max_context = 4096});
  const std::int64_t one = planner.with_sequences(1, 4096).total();
  EXPECT_TRUE(check_plan(planner, planner.within(one), one, 4096));
  const Outcome refused = check_plan(planner, planner.within(one - 1), one - 1, 4096);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.error().message(), HasSubstr("4096 tokens 512.0"));
  EXPECT_THAT(refused.error().message(), HasSubstr("--memory"));
  // Where no context is asked for, a shorter one will do.
  EXPECT_TRUE(check_plan(planner, planner.within(one - 1), one - 1, 0));
  EXPECT_FALSE(check_plan(planner, planner.within(1 << 30), 1 << 30, 0));
}

}  // namespace
}  // namespace dunlin
