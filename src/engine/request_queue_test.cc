#include "engine/request_queue.h"

#include <gtest/gtest.h>

namespace dunlin {
namespace {

std::vector<std::unique_ptr<Sequence>> sequences(int count) {
  std::vector<std::unique_ptr<Sequence>> seqs;
  for (int i = 0; i < count; ++i) seqs.push_back(std::make_unique<Sequence>());
  return seqs;
}

TEST(RequestQueue, RefusesBeyondItsLimitUntilSomeRan) {
  RequestQueue queue(2);
  EXPECT_EQ(queue.submit(sequences(1)).value(), 1u);
  EXPECT_EQ(queue.submit(sequences(1)).value(), 2u);
  const auto refused = queue.submit(sequences(1));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), StatusCode::kResourceExhausted);
  RequestQueue::News news;
  queue.take(news, false);
  EXPECT_EQ(news.arrivals.size(), 2u);
  EXPECT_FALSE(queue.submit(sequences(1)).has_value()) << "taken, but not run yet";
  queue.note_left_queue(1);
  EXPECT_EQ(queue.submit(sequences(1)).value(), 3u);
}

TEST(RequestQueue, TakesChoicesTogetherOrNotAtAll) {
  RequestQueue queue(4);
  EXPECT_EQ(queue.submit(sequences(1)).value(), 1u);
  EXPECT_EQ(queue.submit(sequences(2)).value(), 2u);
  EXPECT_FALSE(queue.submit(sequences(2)).has_value());
  RequestQueue::News news;
  queue.take(news, false);
  ASSERT_EQ(news.arrivals.size(), 3u);
  EXPECT_EQ(news.arrivals[0]->group, 0u);
  EXPECT_EQ(news.arrivals[1]->group, 2u);
  EXPECT_EQ(news.arrivals[2]->group, 2u);
  EXPECT_EQ(news.arrivals[2]->id, 3u);
}

TEST(RequestQueue, GivesArrivalsAndAbortsOnce) {
  RequestQueue queue(4);
  queue.submit(sequences(1)).value();
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
  queue.submit(sequences(1)).value();
  queue.close();
  const auto refused = queue.submit(sequences(1));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), StatusCode::kUnavailable);
  EXPECT_FALSE(queue.wait_until_done(std::chrono::milliseconds(1)));
  queue.note_finished(1);
  EXPECT_TRUE(queue.wait_until_done(std::chrono::milliseconds(1)));
}

}  // namespace
}  // namespace dunlin
