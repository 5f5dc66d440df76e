#include "engine/output_queue.h"

#include <thread>

#include <gtest/gtest.h>

namespace dunlin {
namespace {

TokenOutput output_of(TokenId token) {
  TokenOutput output;
  output.token = token;
  return output;
}

TEST(OutputQueue, KeepsOrderWhileItGrowsAndWraps) {
  OutputQueue queue;
  TokenId next_in = 0;
  TokenId next_out = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 3 + round; ++i) queue.push(output_of(next_in++));
    for (int i = 0; i < 3 + round / 2; ++i) ASSERT_EQ(queue.pop()->token, next_out++);
  }
  while (auto output = queue.pop()) ASSERT_EQ(output->token, next_out++);
  EXPECT_EQ(next_in, next_out);
}

TEST(OutputQueue, AReaderWaitsForAnOutputOrTheTimeout) {
  OutputQueue queue;
  EXPECT_FALSE(queue.pop_within(std::chrono::milliseconds(5)).has_value());
  std::thread writer([&] { queue.push(output_of(3)); });
  const auto output = queue.pop_within(std::chrono::seconds(20));
  writer.join();
  ASSERT_TRUE(output.has_value());
  EXPECT_EQ(output->token, 3);
}

TEST(OutputQueue, NotifiesAtOnceForWhatIsThereAndForEachPush) {
  OutputQueue queue;
  queue.push(output_of(1));
  int calls = 0;
  int popped = 0;
  queue.set_notify([&] {
    ++calls;
    while (queue.pop()) ++popped;
  });
  EXPECT_EQ(calls, 1);
  queue.push(output_of(2));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(popped, 2);
  queue.set_notify(nullptr);
  queue.push(output_of(3));
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace dunlin
