#include "engine/request_queue.h"

#include <gtest/gtest.h>

namespace dunlin {
namespace {

std::unique_ptr<Sequence> any_sequence() { return std::make_unique<Sequence>(); }

TEST(RequestQueue, RefusesBeyondItsLimitUntilSomeRan) {
  RequestQueue queue(2);
  EXPECT_EQ(queue.submit(any_sequence()).value(), 1u);
  EXPECT_EQ(queue.submit(any_sequence()).value(), 2u);
  const auto refused = queue.submit(any_sequence());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), StatusCode::kResourceExhausted);
  RequestQueue::News news;
  queue.take(news, false);
  EXPECT_EQ(news.arrivals.size(), 2u);
  EXPECT_FALSE(queue.submit(any_sequence()).has_value()) << "taken, but not run yet";
  queue.note_left_queue(1);
  EXPECT_EQ(queue.submit(any_sequence()).value(), 3u);
}

TEST(RequestQueue, GivesArrivalsAndAbortsOnce) {
  RequestQueue queue(4);
  queue.submit(any_sequence()).value();
  queue.abort(1);
  RequestQueue::News news;
  queue.take(news, true);
  EXPECT_EQ(news.arrivals.size(), 1u);
  EXPECT_EQ(news.aborts, std::vector<RequestId>{1});
  queue.take(news, false);
  EXPECT_TRUE(news.arrivals.empty());
  EXPECT_TRUE(news.aborts.empty());
}

TEST(RequestQueue, ClosesAndWaitsForTheOpenOnes) {
  RequestQueue queue(4);
  queue.submit(any_sequence()).value();
  queue.close();
  const auto refused = queue.submit(any_sequence());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), StatusCode::kUnavailable);
  EXPECT_FALSE(queue.wait_until_done(std::chrono::milliseconds(1)));
  queue.note_finished(1);
  EXPECT_TRUE(queue.wait_until_done(std::chrono::milliseconds(1)));
}

}  // namespace
}  // namespace dunlin
