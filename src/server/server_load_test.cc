// Clients that leave, read slowly or come in crowds; draining; an idle server.
#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/test_server.h"

namespace dunlin {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

// A client that leaves: how, and when.
enum class Leave { kClose, kReset, kHalfClose };
enum class Moment { kQueued, kWhole, kStreaming };

class Disconnect : public testing::TestWithParam<std::tuple<Leave, Moment>> {};

TEST_P(Disconnect, frees_the_engine_within_two_steps) {
  const auto [leave, moment] = GetParam();
  TestServer server(endless());
  server.fake.engine->step_ms = 20;
  server.fake.engine->is_paused = moment == Moment::kQueued;
  RawClient client(server.port);
  client.send(chat(moment == Moment::kStreaming ? R"(,"stream":true,"n":3)" : R"(,"n":3)"));
  if (moment == Moment::kStreaming) {
    client.read_until_text("\"content\":\".\"");
  } else {
    ASSERT_TRUE(server.wait_alive(3));
  }
  if (leave == Leave::kClose) client.close();
  if (leave == Leave::kReset) client.reset();
  if (leave == Leave::kHalfClose) client.shutdown_send();
  const int waited = server.wait_idle();
  EXPECT_GE(waited, 0);
  EXPECT_LE(waited, 200);
  server.fake.engine->is_paused = false;
  EXPECT_THAT(ask(server.port, get("/health")), StartsWith("HTTP/1.1 200"));
}

INSTANTIATE_TEST_SUITE_P(
    Server, Disconnect,
    testing::Combine(testing::Values(Leave::kClose, Leave::kReset, Leave::kHalfClose),
                     testing::Values(Moment::kQueued, Moment::kWhole, Moment::kStreaming)));

TEST(Server, notices_that_a_client_left_who_had_sent_much_ahead) {
  TestServer server(endless());
  server.fake.engine->step_ms = 20;
  RawClient client(server.port);
  client.send(chat() + std::string(100'000, '\n'));
  ASSERT_TRUE(server.wait_alive(1));
  std::this_thread::sleep_for(milliseconds(100));
  client.shutdown_send();
  EXPECT_GE(server.wait_idle(3000), 0);
}

TEST(Server, makes_a_slow_reader_wait_in_bounded_memory_and_loses_nothing) {
  ServerConfig config = test_config();
  config.max_pending_bytes = 4096;
  EngineConfig engine_config = FakeEngine::default_config();
  engine_config.max_context = 1'000'000;
  TestServer server(
      [](const EngineRequest&) {
        std::vector<TokenId> tokens(60'000, 'x');
        tokens.push_back(FakeTokenizer::kEnd);
        return tokens;
      },
      config, engine_config);
  RawClient client(server.port, 4096);
  client.send(chat(R"(,"stream":true,"logprobs":true)", "Connection: close\r\n"));
  std::this_thread::sleep_for(milliseconds(300));
  // Others are served meanwhile.
  EXPECT_THAT(ask(server.port, get("/health")), StartsWith("HTTP/1.1 200"));
  const std::string& all = client.read_to_end(20'000);
  std::size_t tokens = 0;
  for (std::size_t at = all.find("\"token\":\"x\""); at != std::string::npos;
       at = all.find("\"token\":\"x\"", at + 1))
    ++tokens;
  // Where a chunk border cuts a token's text this count misses it; there are few borders.
  EXPECT_NEAR(static_cast<double>(tokens), 60'000, 1000);
  EXPECT_THAT(all.substr(all.size() - 40), HasSubstr("[DONE]"));
}

TEST(Server, cancels_a_reader_who_takes_nothing) {
  ServerConfig config = test_config();
  config.write_stall = milliseconds(200);
  config.max_pending_bytes = 4096;
  EngineConfig engine_config = FakeEngine::default_config();
  engine_config.max_context = 100'000'000;
  TestServer server(endless(), config, engine_config);
  RawClient client(server.port, 4096);
  client.send(chat(R"(,"stream":true,"logprobs":true)"));
  ASSERT_TRUE(server.wait_alive(1));
  EXPECT_GE(server.wait_idle(10'000), 0);
}

TEST(Server, finishes_running_answers_when_drained_and_refuses_new_ones) {
  TestServer server(say("Hello"));
  server.fake.engine->step_ms = 20;
  RawClient running(server.port), idle(server.port);
  running.send(chat());
  ASSERT_TRUE(server.wait_alive(1));
  server.server->drain();
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_THAT(running.read_answer(), HasSubstr("Hello"));
  server.join();
  EXPECT_EQ(server.exit_code, 0);
  EXPECT_FALSE(RawClient(server.port).is_open());
}

TEST(Server, cancels_what_is_not_done_after_the_grace_time) {
  TestServer server(endless());
  server.fake.engine->step_ms = 20;
  RawClient whole(server.port), streaming(server.port);
  whole.send(chat());
  streaming.send(chat(R"(,"stream":true)"));
  ASSERT_TRUE(server.wait_alive(2));
  server.server->drain();
  server.join();
  // 4,000 by themselves, 500 with the default grace time.
  EXPECT_LT(server.fake.engine->stats().num_steps, 75u);
  EXPECT_THAT(whole.read_answer(), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(streaming.read_to_end(), HasSubstr("shutting down"));
  EXPECT_EQ(server.exit_code, 0);
}

TEST(Server, serves_many_clients_at_once) {
  TestServer server([](const EngineRequest& request) {
    return std::vector<TokenId>{request.prompt.back(), FakeTokenizer::kEnd};
  });
  server.fake.engine->step_ms = 1;
  std::vector<std::thread> clients;
  std::atomic<int> num_right = 0;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([&, i] {
      const std::string letter(1, static_cast<char>('a' + i));
      RawClient client(server.port);
      for (int round = 0; round < 20; ++round) {
        client.send(post("/v1/completions", R"({"prompt":")" + letter + "\"}"));
        const std::string answer = client.read_answer();
        if (json::parse(body_of(answer))["choices"][0]["text"] == letter) ++num_right;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(num_right, 320);
}

TEST(Server, shows_metrics_under_vllms_names) {
  TestServer server;
  ask(server.port, chat());
  const std::string metrics = ask(server.port, get("/metrics"));
  for (const char* name :
       {"vllm:num_requests_running{model_name=\"fake\",engine=\"0\"} 0",
        "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "vllm:generation_tokens_total",
        "vllm:prompt_tokens_total",
        "vllm:request_success_total{model_name=\"fake\",engine=\"0\",finished_reason=\"stop\"} 1",
        "vllm:time_to_first_token_seconds_bucket", "vllm:prefix_cache_hits_total",
        "vllm:request_params_n_count{model_name=\"fake\",engine=\"0\"} 1"}) {
    EXPECT_THAT(metrics, HasSubstr(name));
  }
}

TEST(Server, uses_no_time_when_idle) {
  TestServer server;
  RawClient client(server.port);
  client.send(get("/health"));
  client.read_answer();
  rusage before{}, after{};
  const auto server_time = [](const rusage& usage) {
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
  };
  ::getrusage(RUSAGE_SELF, &before);
  std::this_thread::sleep_for(milliseconds(1000));
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(server_time(after) - server_time(before), 10);
}

TEST(Server, says_who_holds_the_port) {
  TestServer first;
  FakeSession fake(say("x"));
  ServerConfig config = test_config();
  config.port = first.port;
  const auto second = HttpServer::create(*fake.session, config);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(second.error().message(), HasSubstr("process " + std::to_string(::getpid())));
  EXPECT_THAT(second.error().message(), HasSubstr("--port"));
}

TEST(Server, refuses_a_host_that_is_not_known) {
  FakeSession fake(say("x"));
  ServerConfig config = test_config();
  config.host = "no.such.host.invalid";
  const auto server = HttpServer::create(*fake.session, config);
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace dunlin
