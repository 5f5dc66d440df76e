#include "engine/scheduler.h"

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
      : kv_(KvLayout::make(windows, 1, 8, 8, DType::kF16, DType::kF16), num_blocks, true),
        scheduler_(config, kv_) {}

  RequestId add(int prompt, int max_tokens, int priority = 0) {
    EngineRequest request;
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
      kv_.commit(s.seq->kv, s.seq->tokens, s.end());
      if (!s.samples) continue;
      s.seq->tokens.push_back(7);
      if (s.seq->num_output_tokens() == s.seq->sampling.max_tokens) done.push_back(s.seq->id);
    }
    for (const RequestId id : done) scheduler_.remove(id);
    scheduler_.check_integrity();
    return result;
  }

  Scheduler& scheduler() { return scheduler_; }
  KvCacheManager& kv() { return kv_; }
  int num_preempted() const { return num_preempted_; }

 private:
  KvCacheManager kv_;
  Scheduler scheduler_;
  RequestId next_id_ = 1;
  int num_preempted_ = 0;
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

}  // namespace
}  // namespace dunlin
