#include "engine/waiting_queue.h"

#include <map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dunlin {
namespace {

using ::testing::ElementsAre;

class Queue {
 public:
  explicit Queue(SchedulePolicy policy, int max_overtakes = 64, std::vector<double> shares = {})
      : shares_(shares), queue_(policy, max_overtakes, shares_) {}

  void add(RequestId id, int priority = 0, int tenant = 0) {
    auto seq = std::make_unique<Sequence>();
    seq->id = seq->arrival = id;
    seq->priority = priority;
    seq->tenant = tenant;
    shares_.enter(tenant);
    queue_.insert(std::move(seq));
  }

  // Admits the next one; `num_tokens` are charged to its tenant.
  RequestId take(int num_tokens = 1) {
    Sequence* seq = queue_.next([this](Sequence& s) { return cached[s.id]; });
    if (seq == nullptr) return 0;
    const auto taken = queue_.admit(*seq);
    queue_.check_integrity();
    shares_.charge(taken->tenant, num_tokens);
    return taken->id;
  }

  std::vector<RequestId> take_all() {
    std::vector<RequestId> order;
    while (const RequestId id = take()) order.push_back(id);
    return order;
  }

  FairShare& shares() { return shares_; }
  std::map<RequestId, int> cached;  // tokens that the prefix cache has

 private:
  FairShare shares_;
  WaitingQueue queue_;
};

TEST(WaitingQueue, FirstComeFirstServedKnowsNoPriority) {
  Queue queue(SchedulePolicy::kFcfs);
  queue.add(1, 5);
  queue.add(2, 0);
  queue.add(3, -7);
  EXPECT_THAT(queue.take_all(), ElementsAre(1, 2, 3));
}

TEST(WaitingQueue, LowerPriorityNumbersFirstAndTiesByArrival) {
  Queue queue(SchedulePolicy::kPriority);
  queue.add(1, 5);
  queue.add(2, 0);
  queue.add(3, 5);
  queue.add(4, -1);
  EXPECT_THAT(queue.take_all(), ElementsAre(4, 2, 1, 3));
}

TEST(WaitingQueue, TheLongestCachedPrefixFirstAndTiesByArrival) {
  Queue queue(SchedulePolicy::kPrefix);
  queue.cached = {{1, 0}, {2, 32}, {3, 512}, {4, 32}};
  for (RequestId id = 1; id <= 4; ++id) queue.add(id);
  EXPECT_THAT(queue.take_all(), ElementsAre(3, 2, 4, 1));
}

TEST(WaitingQueue, NobodyIsOvertakenMoreOftenThanStated) {
  for (const int bound : {0, 1, 5}) {
    Queue queue(SchedulePolicy::kPriority, bound);
    queue.add(1, 10);
    RequestId next = 2;
    for (int i = 0; i < bound; ++i) {
      queue.add(next++, 0);
      EXPECT_EQ(queue.take(), next - 1) << "urgent ones go first";
    }
    queue.add(next, 0);
    EXPECT_EQ(queue.take(), 1u) << "overtaken " << bound << " times";
  }
}

TEST(WaitingQueue, DueOnesGoInTheOrderOfArrival) {
  Queue queue(SchedulePolicy::kPriority, 2);
  queue.add(1, 10);
  queue.add(2, 20);
  queue.add(3, 10);
  queue.add(4, 0);
  queue.add(5, 0);
  queue.add(6, 0);
  EXPECT_THAT(queue.take_all(), ElementsAre(4, 5, 1, 2, 3, 6));
}

TEST(WaitingQueue, TenantsTakeTurnsByWhatTheyWereServed) {
  Queue queue(SchedulePolicy::kFcfs, 64, {1, 1});
  for (RequestId id = 1; id <= 6; ++id) queue.add(id, 0, 0);
  queue.add(7, 0, 1);
  queue.add(8, 0, 1);
  EXPECT_THAT(queue.take_all(), ElementsAre(1, 7, 2, 8, 3, 4, 5, 6));
}

TEST(WaitingQueue, AShareOfTwoIsServedTwice) {
  Queue queue(SchedulePolicy::kFcfs, 64, {1, 2});
  for (RequestId id = 1; id <= 60; ++id) queue.add(id, 0, static_cast<int>(id % 2));
  int second = 0;
  for (int i = 0; i < 30; ++i) second += queue.take(10) % 2 == 1;
  EXPECT_EQ(second, 20);
}

TEST(FairShare, APauseSavesNothingUp) {
  const std::vector<double> equal = {1, 1, 1};
  FairShare shares(equal);
  shares.enter(0);
  shares.charge(0, 1000);
  shares.enter(1);
  EXPECT_EQ(shares.served(1), 1000) << "as far as the one who works";
  shares.charge(1, 50);
  shares.leave(0);
  shares.leave(1);
  shares.enter(2);
  EXPECT_EQ(shares.served(2), 1050) << "as far as the last who worked";
}

TEST(FairShare, WhoIsAheadStaysAhead) {
  const std::vector<double> equal = {1, 1};
  FairShare shares(equal);
  shares.enter(0);
  shares.enter(1);
  shares.charge(0, 500);
  shares.leave(0);
  shares.enter(0);
  EXPECT_EQ(shares.served(0), 500);
  EXPECT_EQ(shares.served(1), 0);
}

}  // namespace
}  // namespace dunlin
