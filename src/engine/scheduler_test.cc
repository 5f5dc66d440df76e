#include "engine/scheduler.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dunlin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Drives the scheduler with no model: every step's tokens count as computed, and each sequence
// that sampled gets a token.
class Steps {
 public:
  Steps(SchedulerConfig config, int num_blocks, std::vector<int> windows = {0})
      : kv_(KvLayout::make(windows, 1, 8, 8, KvFormat::kF16), num_blocks, true),
        scheduler_(config, kv_) {}

  RequestId add(int prompt, int max_tokens, int priority = 0, int tenant = 0) {
    EngineRequest request;
    request.tenant = tenant;
    for (int i = 0; i < prompt; ++i) {
      request.prompt.push_back(static_cast<TokenId>(next_id_ * 1000 + static_cast<unsigned>(i)));
    }
    request.sampling.max_tokens = max_tokens;
    request.priority = priority;
    auto seq = make_sequence(std::move(request), 1 << 20);
    seq->id = seq->arrival = next_id_++;
    scheduler_.add(std::move(seq));
    return next_id_ - 1;
  }

  // (id, tokens) of the step, in order.
  std::vector<std::pair<RequestId, int>> step() {
    std::vector<std::pair<RequestId, int>> result;
    const ScheduledBatch& batch = scheduler_.schedule();
    scheduler_.check_integrity();
    num_preempted_ += batch.num_preempted;
    std::vector<RequestId> done;
    for (const ScheduledSequence& s : batch.seqs) {
      result.emplace_back(s.seq->id, s.num_tokens);
      num_computed_[s.seq->tenant] += s.num_tokens;
      kv_.commit(s.seq->kv, s.seq->tokens, s.end());
      if (!s.samples) continue;
      s.seq->tokens.push_back(7);
      if (s.seq->num_output_tokens() == s.seq->sampling.max_tokens) done.push_back(s.seq->id);
    }
    num_finished_.clear();
    for (const RequestId id : done) ++num_finished_[scheduler_.remove(id)->tenant];
    scheduler_.check_integrity();
    return result;
  }

  Scheduler& scheduler() { return scheduler_; }
  KvCacheManager& kv() { return kv_; }
  int num_preempted() const { return num_preempted_; }
  int num_computed(int tenant) { return num_computed_[tenant]; }
  int num_finished(int tenant) { return num_finished_[tenant]; }  // in the last step

 private:
  KvCacheManager kv_;
  Scheduler scheduler_;
  RequestId next_id_ = 1;
  int num_preempted_ = 0;
  std::map<int, int> num_computed_;
  std::map<int, int> num_finished_;
};

using Share = std::pair<RequestId, int>;

TEST(Scheduler, ChunksALongPromptWithinTheBudget) {
  Steps steps({.max_seqs = 4, .max_batch_tokens = 32, .max_logits_rows = 8}, 64);
  steps.add(80, 2);
  EXPECT_THAT(steps.step(), ElementsAre(Share{1, 32}));
  EXPECT_THAT(steps.step(), ElementsAre(Share{1, 32}));
  EXPECT_THAT(steps.step(), ElementsAre(Share{1, 16}));
  EXPECT_THAT(steps.step(), ElementsAre(Share{1, 1}));
  EXPECT_THAT(steps.step(), IsEmpty());
}

TEST(Scheduler, DecodesBeforeItPrefills) {
  Steps steps({.max_seqs = 4, .max_batch_tokens = 32, .max_logits_rows = 8}, 64);
  steps.add(100, 5);
  steps.step();
  steps.scheduler().remove(1);
  steps.add(10, 20);
  steps.step();
  steps.add(100, 5);
  EXPECT_THAT(steps.step(), ElementsAre(Share{2, 1}, Share{3, 31}));
  EXPECT_THAT(steps.step(), ElementsAre(Share{2, 1}, Share{3, 31}));
}

TEST(Scheduler, SharesOneStepAmongSeveralPrompts) {
  Steps steps({.max_seqs = 4, .max_batch_tokens = 32, .max_logits_rows = 8}, 64);
  for (int i = 0; i < 5; ++i) steps.add(9, 3);
  EXPECT_THAT(steps.step(), ElementsAre(Share{1, 9}, Share{2, 9}, Share{3, 9}, Share{4, 5}));
  EXPECT_EQ(steps.scheduler().num_waiting(), 1) << "max_seqs";
}

TEST(Scheduler, RunsLowerPriorityNumbersFirstAndTiesByArrival) {
  Steps steps({.max_seqs = 1, .max_batch_tokens = 32, .max_logits_rows = 8}, 64);
  steps.add(4, 1, 5);
  steps.add(4, 1, 0);
  steps.add(4, 1, 5);
  steps.add(4, 1, -1);
  std::vector<RequestId> order;
  while (steps.scheduler().has_work()) order.push_back(steps.step()[0].first);
  EXPECT_THAT(order, ElementsAre(4, 2, 1, 3));
}

TEST(Scheduler, PreemptsTheNewestWhenBlocksRunOut) {
  Steps steps({.max_seqs = 4, .max_batch_tokens = 64, .max_logits_rows = 8}, 7);
  steps.add(30, 60);
  steps.add(30, 60);
  EXPECT_EQ(steps.step().size(), 2u);
  while (steps.num_preempted() == 0) steps.step();
  EXPECT_EQ(steps.scheduler().num_running(), 1);
  EXPECT_EQ(steps.step()[0].first, 1u);
  std::vector<RequestId> seen;
  while (steps.scheduler().has_work()) seen.push_back(steps.step().back().first);
  EXPECT_EQ(seen.back(), 2u);
  EXPECT_EQ(steps.kv().num_free_blocks(), 7);
}

TEST(Scheduler, PreemptsTheLessUrgentBeforeTheNewest) {
  Steps steps({.max_seqs = 4, .max_batch_tokens = 64, .max_logits_rows = 8}, 7);
  steps.add(30, 60, 1);
  steps.add(30, 60, 0);
  steps.step();
  while (steps.num_preempted() == 0) steps.step();
  EXPECT_EQ(steps.step()[0].first, 2u);
}

TEST(Scheduler, AdmitsNobodyWithoutRoomForItsWholePromptAndTheGrowthOfOthers) {
  Steps steps({.max_seqs = 4, .max_batch_tokens = 16, .max_logits_rows = 8}, 6);
  steps.add(10, 50);
  steps.add(80, 1);  // five blocks: only alone
  for (int i = 0; i < 50; ++i) EXPECT_THAT(steps.step(), ElementsAre(testing::Key(1u)));
  EXPECT_EQ(steps.num_preempted(), 0);
  EXPECT_THAT(steps.step(), ElementsAre(Share{2, 16}));
}

TEST(Scheduler, WaitingRequestsDontOvertakeEachOther) {
  Steps steps({.max_seqs = 4, .max_batch_tokens = 16, .max_logits_rows = 8}, 6);
  steps.add(10, 10);
  steps.add(80, 1);
  steps.add(4, 1);  // would fit at once
  for (int i = 0; i < 10; ++i) EXPECT_THAT(steps.step(), ElementsAre(testing::Key(1u)));
  std::vector<RequestId> order;
  while (steps.scheduler().has_work()) order.push_back(steps.step()[0].first);
  EXPECT_EQ(order.front(), 2u);
  EXPECT_EQ(order.back(), 3u);
}

TEST(Scheduler, KeepsRowsForSamplersWhileAPromptIsScored) {
  Steps steps({.max_seqs = 2, .max_batch_tokens = 64, .max_logits_rows = 10}, 32);
  EngineRequest request;
  request.prompt.assign(30, 1);
  request.sampling.max_tokens = 1;
  request.echo_logprobs = true;
  auto seq = make_sequence(std::move(request), 100);
  seq->id = seq->arrival = 100;
  steps.scheduler().add(std::move(seq));
  steps.add(4, 3);
  const ScheduledBatch& batch = steps.scheduler().schedule();
  ASSERT_EQ(batch.seqs.size(), 2u);
  EXPECT_EQ(batch.num_rows, 1 + 8);
  for (const auto& s : batch.seqs) {
    if (s.seq->echo_logprobs) {
      EXPECT_EQ(s.num_tokens, 8) << "ten rows, two of them reserved";
    }
  }
}

TEST(Scheduler, TheLongestCachedPrefixRunsFirst) {
  SchedulerConfig config{.max_seqs = 1, .max_batch_tokens = 64, .max_logits_rows = 8};
  config.policy = SchedulePolicy::kPrefix;
  Steps steps(config, 64);
  const auto add = [&](RequestId id, TokenId first, int length) {
    EngineRequest request;
    request.prompt.assign(static_cast<std::size_t>(length), first);
    request.sampling.max_tokens = 1;
    auto seq = make_sequence(std::move(request), 1 << 20);
    seq->id = seq->arrival = id;
    steps.scheduler().add(std::move(seq));
  };
  add(1, 5, 40);
  steps.step();
  add(2, 6, 40);
  add(3, 5, 20);
  add(4, 5, 50);
  EXPECT_THAT(steps.step(), ElementsAre(Share{4, 18})) << "32 tokens are cached";
  EXPECT_THAT(steps.step(), ElementsAre(Share{3, 4}));
  EXPECT_THAT(steps.step(), ElementsAre(Share{2, 40}));
}

// Clients that send their next request when the one before is answered.
double share_of_second_key(Steps& steps, int num_clients_of_first, int pause_steps) {
  for (int i = 0; i < num_clients_of_first; ++i) steps.add(20, 30, 0, 0);
  steps.add(20, 30, 0, 1);
  int pause = 0;
  for (int i = 0; i < 4000; ++i) {
    steps.step();
    for (int n = steps.num_finished(0); n > 0; --n) steps.add(20, 30, 0, 0);
    if (steps.num_finished(1) > 0) pause = pause_steps;
    if (steps.num_finished(1) > 0 || pause > 0) {
      if (--pause <= 0) steps.add(20, 30, 0, 1);
    }
  }
  return double(steps.num_computed(1)) / (steps.num_computed(0) + steps.num_computed(1));
}

TEST(Scheduler, AKeyWithOneClientGetsHalfBesideOneWithThirty) {
  SchedulerConfig config{.max_seqs = 2, .max_batch_tokens = 64, .max_logits_rows = 8};
  config.tenant_shares = {1, 1};
  Steps steps(config, 64);
  EXPECT_NEAR(share_of_second_key(steps, 30, 0), 0.5, 0.05);
}

TEST(Scheduler, AKeyGetsItsSlotBackAfterAPause) {
  SchedulerConfig config{.max_seqs = 2, .max_batch_tokens = 64, .max_logits_rows = 8};
  config.tenant_shares = {1, 1};
  Steps steps(config, 64);
  // The slot goes to the other key meanwhile, and comes back at once.
  EXPECT_NEAR(share_of_second_key(steps, 30, 2), 0.47, 0.04);
  EXPECT_GT(steps.num_preempted(), 50);
}

TEST(Scheduler, KeysThatAlwaysWaitAreServedByTheirShares) {
  for (const double share : {1.0, 3.0}) {
    SchedulerConfig config{.max_seqs = 8, .max_batch_tokens = 32, .max_logits_rows = 16};
    config.tenant_shares = {1, share};
    Steps steps(config, 128);
    for (int i = 0; i < 30; ++i) steps.add(20, 30, 0, 0);
    for (int i = 0; i < 9; ++i) steps.add(150, 10, 0, 1);  // one waits at least
    for (int i = 0; i < 4000; ++i) {
      steps.step();
      for (int n = steps.num_finished(0); n > 0; --n) steps.add(20, 30, 0, 0);
      for (int n = steps.num_finished(1); n > 0; --n) steps.add(150, 10, 0, 1);
    }
    const double second = steps.num_computed(1);
    EXPECT_NEAR(second / (steps.num_computed(0) + second), share / (1 + share), 0.03);
  }
}

TEST(Scheduler, PromptsOfTheKeyThatWasServedLeastAreComputedFirst) {
  SchedulerConfig config{.max_seqs = 8, .max_batch_tokens = 32, .max_logits_rows = 16};
  config.tenant_shares = {1, 1};
  Steps steps(config, 128);
  for (int i = 0; i < 3; ++i) steps.add(200, 1, 0, 0);
  steps.step();
  steps.add(64, 1, 0, 1);
  EXPECT_THAT(steps.step(), ElementsAre(Share{1, 32}));
  std::vector<RequestId> order;
  for (int i = 0; i < 4; ++i) order.push_back(steps.step()[0].first);
  EXPECT_THAT(order, testing::Contains(4u).Times(2)) << "turns, not the order of arrival";
}

}  // namespace
}  // namespace dunlin
