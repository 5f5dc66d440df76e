#include "engine/engine.h"

#include <ctime>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "support/engine_harness.h"
#include "support/gated_engine.h"

namespace dunlin {
namespace {

using namespace std::chrono_literals;
using testing::expected_output;
using testing::FakeModel;
using testing::Gate;
using testing::make_engine;
using testing::make_request;
using testing::random_prompt;
using testing::read_all;
using testing::small_config;

void wait_until(const std::function<bool()>& condition) {
  for (int i = 0; i < 20000 && !condition(); ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(condition());
}

std::string refusal(Engine& engine, EngineRequest request, StatusCode code) {
  const auto stream = engine.submit(std::move(request));
  if (stream) return "accepted";
  EXPECT_EQ(stream.error().code(), code);
  return stream.error().message();
}

TEST(Engine, StreamsOneRequest) {
  auto engine = make_engine(small_config());
  const auto prompt = random_prompt(1, 30);
  auto stream = engine->submit(make_request(prompt, 20)).value();
  FinishReason finish{};
  EXPECT_EQ(read_all(*stream, &finish), expected_output({0}, prompt, 20));
  EXPECT_EQ(finish, FinishReason::kLength);
}

TEST(Engine, ManySubmittersGetTheSameAsEachAlone) {
  auto config = small_config();
  const FakeModel shape({0});
  config.max_context = 128;
  config.kv_bytes = 14 * shape.kv_layout().block_bytes();  // scarce: three would need 24
  auto engine = make_engine(config);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (unsigned i = 0; i < 8; ++i) {
        const auto prompt = random_prompt(t * 100 + i, 5 + static_cast<int>((t * 17 + i * 7) % 60));
        auto stream = engine->submit(make_request(prompt, 40)).value();
        if (i % 4 == 3) continue;  // leaves at once
        EXPECT_EQ(read_all(*stream), expected_output({0}, prompt, 40));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  wait_until([&] {
    const auto stats = engine->stats();
    return stats.finished_length + stats.finished_cancelled == 48;
  });
  const auto stats = engine->stats();
  EXPECT_GE(stats.finished_length, 36u);
  EXPECT_EQ(stats.num_running + stats.num_waiting, 0);
  EXPECT_EQ(stats.num_free_blocks, stats.num_blocks);
}

TEST(Engine, RefusesWhatIsWrongWithTheNumbers) {
  auto engine = make_engine(small_config());
  const auto invalid = StatusCode::kInvalidArgument;
  EXPECT_EQ(refusal(*engine, make_request({}, 1), invalid),
            "the prompt is empty; it needs at least one token");
  EXPECT_EQ(refusal(*engine, make_request({1, 61}, 1), invalid),
            "prompt token 1 is 61, but the vocabulary has 61 tokens");
  EXPECT_EQ(refusal(*engine, make_request(random_prompt(1, 200), 57), invalid),
            "the prompt has 200 tokens and max_tokens asks for 57, together 257, but the context "
            "holds 256; shorten the prompt or lower max_tokens");
  EXPECT_EQ(refusal(*engine, make_request({1}, 0), invalid),
            "max_tokens must be at least 1, got 0");
  EngineRequest request = make_request({1}, 5);
  request.sampling.top_p = 2;
  EXPECT_EQ(refusal(*engine, request, invalid), "top_p must be in (0, 1], got 2");
  auto longest = engine->submit(make_request(random_prompt(1, 200), 56)).value();
  EXPECT_EQ(read_all(*longest).size(), 56u);
}

TEST(Engine, RefusesBeyondTheQueueAndTakesMoreLater) {
  Gate gate;
  auto config = small_config();
  config.max_seqs = 1;
  config.max_queue = 2;
  auto engine = make_engine(config, &gate);
  auto running = engine->submit(make_request(random_prompt(1, 5), 3)).value();
  gate.wait_for_arrivals(1);
  gate.let(1);
  gate.wait_for_arrivals(2);  // its first step is over
  auto second = engine->submit(make_request(random_prompt(2, 5), 3)).value();
  auto third = engine->submit(make_request(random_prompt(3, 5), 3)).value();
  const std::string message =
      refusal(*engine, make_request(random_prompt(4, 5), 3), StatusCode::kResourceExhausted);
  EXPECT_NE(message.find("2 requests are waiting"), std::string::npos) << message;
  gate.open();
  read_all(*running);
  read_all(*second);
  read_all(*third);
  auto later = engine->submit(make_request(random_prompt(4, 5), 3)).value();
  EXPECT_EQ(read_all(*later).size(), 3u);
}

TEST(Engine, AVanishedReadersBlocksAreFreeWithinTwoSteps) {
  Gate gate;
  auto config = small_config();
  config.max_batch_tokens = 16;
  auto engine = make_engine(config, &gate);
  auto decoding = engine->submit(make_request(random_prompt(1, 8), 200)).value();
  gate.wait_for_arrivals(1);
  auto in_prefill = engine->submit(make_request(random_prompt(2, 100), 20)).value();
  gate.let(1);
  gate.wait_for_arrivals(2);
  auto queued = engine->submit(make_request(random_prompt(3, 8), 20)).value();
  // All three leave during the second step; the third one may not begin.
  queued.reset();
  in_prefill.reset();
  decoding.reset();
  gate.let(1);
  wait_until([&] { return engine->stats().finished_cancelled == 3; });
  EXPECT_EQ(engine->stats().num_steps, 2u);
  EXPECT_EQ(engine->stats().num_free_blocks, engine->stats().num_blocks);
  gate.open();
}

TEST(Engine, AbortByIdTellsTheReader) {
  Gate gate;
  auto engine = make_engine(small_config(), &gate);
  auto stream = engine->submit(make_request(random_prompt(1, 8), 200)).value();
  gate.wait_for_arrivals(1);
  engine->abort(stream->id());
  engine->abort(12345);
  gate.open();
  FinishReason finish{};
  read_all(*stream, &finish);
  EXPECT_EQ(finish, FinishReason::kCancelled);
}

TEST(Engine, NotifiesAReaderThatPolls) {
  auto engine = make_engine(small_config());
  const auto prompt = random_prompt(1, 8);
  auto stream = engine->submit(make_request(prompt, 50)).value();
  std::mutex mutex;
  std::vector<TokenId> tokens;
  std::atomic<bool> done = false;
  stream->on_ready([&] {
    const std::lock_guard lock(mutex);
    while (auto output = stream->poll()) {
      tokens.push_back(*output->token);
      if (output->finish != FinishReason::kNone) done = true;
    }
  });
  wait_until([&] { return done.load(); });
  const std::lock_guard lock(mutex);
  EXPECT_EQ(tokens, expected_output({0}, prompt, 50));
}

TEST(Engine, AnIdleEngineUsesNoCpu) {
  auto engine = make_engine(small_config());
  auto stream = engine->submit(make_request(random_prompt(1, 8), 20)).value();
  read_all(*stream);
  const auto cpu_ms = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
  };
  std::this_thread::sleep_for(50ms);
  const double before = cpu_ms();
  std::this_thread::sleep_for(2s);
  EXPECT_LE(cpu_ms() - before, 2) << "10 ms in 10 s";
}

TEST(Engine, ShutdownLetsRequestsFinishWithinItsGrace) {
  auto engine = make_engine(small_config());
  const auto prompt = random_prompt(1, 8);
  auto stream = engine->submit(make_request(prompt, 100)).value();
  engine->shutdown(20s);
  EXPECT_EQ(read_all(*stream).size(), 100u);
  EXPECT_EQ(refusal(*engine, make_request({1}, 1), StatusCode::kUnavailable),
            "the server is shutting down");
}

TEST(Engine, ShutdownCancelsWhatIsLeftAfterItsGrace) {
  Gate gate;
  auto engine = make_engine(small_config(), &gate);
  auto stream = engine->submit(make_request(random_prompt(1, 8), 200)).value();
  gate.wait_for_arrivals(1);
  std::thread opener([&] {
    std::this_thread::sleep_for(50ms);
    gate.let(1);
  });
  engine->shutdown(10ms);
  opener.join();
  FinishReason finish{};
  EXPECT_LE(read_all(*stream, &finish).size(), 1u);
  EXPECT_EQ(finish, FinishReason::kCancelled);
}

std::future<PrefixCacheReset> reset_prefix_cache(Engine& engine) {
  auto answer = std::make_shared<std::promise<PrefixCacheReset>>();
  EXPECT_TRUE(
      engine.reset_prefix_cache([answer](const PrefixCacheReset& r) { answer->set_value(r); }));
  return answer->get_future();
}

int num_cached_tokens(Engine& engine, const EngineRequest& request) {
  const auto stream = engine.submit(request).value();
  while (true) {
    const auto output = stream->wait(20s);
    if (!output) return -1;
    if (output->finish != FinishReason::kNone) return output->stats.num_cached_tokens;
  }
}

TEST(Engine, ResetsThePrefixCacheOfAnIdleEngine) {
  const auto engine = make_engine(small_config());
  const EngineRequest request = make_request(random_prompt(3, 50), 5);
  EXPECT_EQ(num_cached_tokens(*engine, request), 0);
  EXPECT_EQ(num_cached_tokens(*engine, request), 48);
  EXPECT_EQ(reset_prefix_cache(*engine).get().num_dropped_blocks, 3);
  EXPECT_EQ(num_cached_tokens(*engine, request), 0);
}

TEST(Engine, ResetsThePrefixCacheBetweenTwoSteps) {
  Gate gate;
  const auto engine = make_engine(small_config(), &gate);
  const EngineRequest request = make_request(random_prompt(4, 100), 20);
  const auto running = engine->submit(request).value();
  gate.wait_for_arrivals(1);
  auto reset = reset_prefix_cache(*engine);
  gate.let(1);
  const PrefixCacheReset told = reset.get();
  EXPECT_EQ(told.num_forgotten_blocks, 6);
  EXPECT_EQ(told.num_dropped_blocks, 0);
  gate.open();
  EXPECT_EQ(read_all(*running), expected_output({0}, request.prompt, 20));
  EXPECT_EQ(num_cached_tokens(*engine, request), 0);
  EXPECT_EQ(num_cached_tokens(*engine, request), 96);
}

TEST(Engine, AStreamOutlivesItsEngine) {
  auto engine = make_engine(small_config());
  auto stream = engine->submit(make_request(random_prompt(1, 8), 240)).value();
  engine.reset();
  FinishReason finish{};
  read_all(*stream, &finish);
  EXPECT_NE(finish, FinishReason::kNone);
}

Result<std::unique_ptr<Engine>> create(const EngineConfig& config, std::vector<int> windows = {0}) {
  return Engine::create(std::make_unique<FakeModel>(std::move(windows), 61, 2048), config);
}

TEST(EngineCreate, FillsInWhatFits) {
  const FakeModel shape({0});
  const std::int64_t block = shape.kv_layout().block_bytes();
  EngineConfig config;
  config.kv_bytes = 10 * block + 1;
  auto engine = create(config).value();
  EXPECT_EQ(engine->config().max_context, 160);
  EXPECT_EQ(engine->config().kv_bytes, 10 * block);
  config.kv_bytes = 0;
  engine = create(config).value();
  EXPECT_EQ(engine->config().max_context, 2048);
  EXPECT_EQ(engine->config().kv_bytes, 64 * 128 * block) << "64 full contexts";
}

TEST(EngineCreate, RefusesWhatCannotWorkWithTheNumbers) {
  const FakeModel shape({0});
  EngineConfig config;
  config.max_context = 1024;
  config.kv_bytes = 10 * shape.kv_layout().block_bytes();
  auto engine = create(config);
  ASSERT_FALSE(engine.has_value());
  EXPECT_EQ(engine.error().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(engine.error().message().find("one context of 1024 tokens"), std::string::npos)
      << engine.error().message();
  EXPECT_NE(engine.error().message().find("enough for 160 tokens"), std::string::npos);
  config.max_context = 4096;
  engine = create(config);
  ASSERT_FALSE(engine.has_value());
  EXPECT_EQ(engine.error().code(), StatusCode::kInvalidArgument);
  config = {};
  config.max_seqs = 0;
  EXPECT_FALSE(create(config).has_value());
  config = {};
  config.kv_bytes = 1;
  EXPECT_FALSE(create(config).has_value());
}

}  // namespace
}  // namespace dunlin
