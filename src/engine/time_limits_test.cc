// Requests that may wait or take only so long.
#include <chrono>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "support/engine_harness.h"
#include "support/gated_engine.h"

namespace dunlin {
namespace {

using namespace std::chrono_literals;
using testing::CoreHarness;
using testing::expected_output;
using testing::Gate;
using testing::make_engine;
using testing::make_request;
using testing::random_prompt;
using testing::read_all;
using testing::small_config;

TEST(TimeLimits, ARequestThatWaitedTooLongIsGivenUp) {
  CoreHarness harness({0}, {.max_context = 128, .max_seqs = 1}, 64);
  const RequestId running = harness.add(make_request(random_prompt(1, 10), 20));
  EngineRequest request = make_request(random_prompt(2, 10), 20);
  request.queue_timeout = 50ms;
  const RequestId waiting = harness.add(request);
  const auto now = EngineClock::now();
  harness.step();
  harness.expire(now);
  EXPECT_FALSE(harness.is_finished(waiting));
  harness.expire(now + 1s);
  ASSERT_TRUE(harness.is_finished(waiting));
  EXPECT_EQ(harness.last(waiting).finish, FinishReason::kError);
  EXPECT_EQ(harness.last(waiting).ended_by, TimeLimit::kQueue);
  EXPECT_NE(harness.last(waiting).error->message().find("waited 50 ms"), std::string::npos);
  harness.run_all();
  EXPECT_EQ(harness.tokens(running).size(), 20u);
  EXPECT_EQ(harness.core().stats().finished_error, 1u);
}

TEST(TimeLimits, TheQueueTimeoutEndsWhenARequestRuns) {
  CoreHarness harness({0}, {.max_context = 128}, 64);
  EngineRequest request = make_request(random_prompt(2, 10), 20);
  request.queue_timeout = 50ms;
  const RequestId id = harness.add(request);
  harness.step();
  harness.expire(EngineClock::now() + 1s);
  harness.run_all();
  EXPECT_EQ(harness.last(id).finish, FinishReason::kLength);
}

TEST(TimeLimits, ADeadlineEndsARequestWithWhatItHas) {
  CoreHarness harness({0}, {.max_context = 128, .max_batch_tokens = 64}, 64);
  EngineRequest request = make_request(random_prompt(2, 10), 100);
  request.deadline = 50ms;
  const RequestId writing = harness.add(request);
  request.prompt = random_prompt(3, 120);
  request.sampling.max_tokens = 5;
  const RequestId reading = harness.add(request);
  harness.step();
  harness.expire(EngineClock::now() + 1s);
  EXPECT_EQ(harness.last(writing).finish, FinishReason::kLength);
  EXPECT_EQ(harness.last(writing).ended_by, TimeLimit::kDeadline);
  EXPECT_EQ(harness.tokens(writing), expected_output({0}, random_prompt(2, 10), 1));
  EXPECT_EQ(harness.last(reading).finish, FinishReason::kError);
  EXPECT_EQ(harness.last(reading).ended_by, TimeLimit::kDeadline);
  EXPECT_NE(harness.last(reading).error->message().find("50 ms"), std::string::npos);
  EXPECT_FALSE(harness.core().has_work());
  EXPECT_EQ(harness.core().stats().num_free_blocks, 64);
  EXPECT_EQ(harness.core().stats().timed_out, 2u);
}

TEST(TimeLimits, EndsARequestThatWaitsLongerThanItMay) {
  Gate gate;
  auto config = small_config();
  config.max_seqs = 1;
  config.queue_timeout = 1h;
  auto engine = make_engine(config, &gate);
  auto running = engine->submit(make_request(random_prompt(1, 5), 3)).value();
  gate.wait_for_arrivals(1);
  EngineRequest request = make_request(random_prompt(2, 5), 3);
  request.queue_timeout = 5ms;
  auto waiting = engine->submit(std::move(request)).value();
  std::this_thread::sleep_for(10ms);
  gate.let(1);
  const auto output = waiting->wait(20s);
  ASSERT_TRUE(output.has_value());
  EXPECT_EQ(output->finish, FinishReason::kError);
  EXPECT_EQ(output->ended_by, TimeLimit::kQueue);
  gate.open();
  EXPECT_EQ(read_all(*running).size(), 3u);
}

TEST(TimeLimits, ARequestsOwnTimeIsNeverLongerThanTheEngines) {
  auto config = small_config();
  config.request_timeout = 1ms;
  Gate gate;
  auto engine = make_engine(config, &gate);
  EngineRequest request = make_request(random_prompt(2, 5), 250);
  request.deadline = 1h;
  auto stream = engine->submit(std::move(request)).value();
  std::this_thread::sleep_for(5ms);
  gate.open();
  std::optional<TokenOutput> output;
  do {
    output = stream->wait(20s);
    ASSERT_TRUE(output.has_value());
  } while (output->finish == FinishReason::kNone);
  EXPECT_EQ(output->ended_by, TimeLimit::kDeadline);
}

}  // namespace
}  // namespace dunlin
