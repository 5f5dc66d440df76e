#include "server/server.h"

#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/fake_session.h"
#include "support/raw_client.h"

namespace dunlin {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

ServerConfig test_config() {
  ServerConfig config;
  config.port = 0;
  config.version = "1.2.3";
  config.grace = milliseconds(300);
  return config;
}

// A server on a port of its own, run by a thread.
class TestServer {
 public:
  explicit TestServer(FakeScript script = say("Hello"), ServerConfig config = test_config(),
                      EngineConfig engine_config = FakeEngine::default_config())
      : fake(std::move(script), kFakeTemplate, engine_config) {
    auto created = HttpServer::create(*fake.session, std::move(config));
    DUNLIN_CHECK(created.has_value(), "the test's server can't listen");
    server = std::move(*created);
    port = server->port();
    thread_ = std::thread([this] { exit_code = server->run(); });
  }
  ~TestServer() {
    server->stop_now();
    join();
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  // Waits until the engine has nothing to do; how long it took in ms, or -1.
  int wait_idle(int timeout_ms = 2000) {
    for (int waited = 0; waited < timeout_ms; ++waited) {
      if (fake.engine->num_alive() == 0) return waited;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return -1;
  }
  bool wait_alive(int num, int timeout_ms = 2000) {
    for (int waited = 0; waited < timeout_ms; ++waited) {
      if (fake.engine->num_alive() == num) return true;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return false;
  }

  FakeSession fake;
  std::unique_ptr<HttpServer> server;
  int port = 0;
  int exit_code = -1;

 private:
  std::thread thread_;
};

std::string get(const std::string& path, const std::string& headers = {},
                const std::string& method = "GET") {
  return method + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headers + "\r\n";
}
std::string post(const std::string& path, const std::string& body,
                 const std::string& headers = {}) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         headers + "\r\n" + body;
}
std::string chat_body(const std::string& fields = {}) {
  return R"({"messages":[{"role":"user","content":"hi"}])" + fields + "}";
}
std::string chat(const std::string& fields = {}, const std::string& headers = {}) {
  return post("/v1/chat/completions", chat_body(fields), headers);
}
std::string body_of(const std::string& answer) {
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

std::string ask(int port, const std::string& request) {
  RawClient client(port);
  client.send(request);
  return client.read_answer();
}

FakeScript endless() {
  return [](const EngineRequest&) { return std::vector<TokenId>(); };
}

TEST(Server, answers_health_version_and_models) {
  TestServer server;
  RawClient client(server.port);
  client.send(get("/health"));
  EXPECT_THAT(client.read_answer(), HasSubstr(R"({"status":"ok"})"));
  client.send(get("/version?x=1"));
  EXPECT_THAT(client.read_answer(), HasSubstr(R"({"version":"1.2.3"})"));
  client.send(get("/v1/models"));
  EXPECT_EQ(json::parse(body_of(client.read_answer()))["data"][0]["id"], "fake");
  client.send(get("/v1/models/fake"));
  EXPECT_THAT(client.read_answer(), StartsWith("HTTP/1.1 200"));
  client.send(get("/v1/models/other%2Fone"));
  const std::string missing = client.read_answer();
  EXPECT_THAT(missing, StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(missing, HasSubstr("other/one"));
}

TEST(Server, answers_a_chat_whole_and_as_a_stream) {
  TestServer server;
  RawClient client(server.port);
  client.send(chat());
  const json whole = json::parse(body_of(client.read_answer()));
  EXPECT_EQ(whole["choices"][0]["message"]["content"], "Hello");
  client.send(chat(R"(,"stream":true)"));
  const std::string stream = client.read_until_text("0\r\n\r\n");
  EXPECT_THAT(stream, HasSubstr("Content-Type: text/event-stream"));
  EXPECT_THAT(stream, HasSubstr("Transfer-Encoding: chunked"));
  EXPECT_THAT(stream, HasSubstr("data: [DONE]\n\n"));
}

TEST(Server, streams_to_http_1_0_until_the_end_of_the_connection) {
  TestServer server;
  RawClient client(server.port);
  const std::string body = chat_body(R"(,"stream":true)");
  client.send("POST /v1/chat/completions HTTP/1.0\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
  const std::string answer = client.read_to_end();
  EXPECT_TRUE(client.at_end());
  EXPECT_THAT(answer, testing::Not(HasSubstr("chunked")));
  EXPECT_TRUE(answer.ends_with("data: [DONE]\n\n"));
}

TEST(Server, names_the_way_out_for_wrong_paths_and_methods) {
  TestServer server;
  const std::string missing = ask(server.port, get("/v2/chat"));
  EXPECT_THAT(missing, StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(missing, HasSubstr("/v1/chat/completions"));
  const std::string wrong = ask(server.port, get("/v1/chat/completions"));
  EXPECT_THAT(wrong, StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(wrong, HasSubstr("Allow: POST, OPTIONS"));
  EXPECT_THAT(ask(server.port, get("/health", {}, "DELETE")), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(ask(server.port, get("/health", {}, "BREW")), StartsWith("HTTP/1.1 405"));
}

TEST(Server, answers_head_without_a_body_and_options_with_what_is_allowed) {
  TestServer server;
  RawClient client(server.port);
  client.send(get("/health", {}, "HEAD") + get("/v1/models"));
  const std::string head = client.read_answer(false);
  EXPECT_THAT(head, HasSubstr("Content-Length: 15\r\n"));
  EXPECT_THAT(client.read_answer(), StartsWith("HTTP/1.1 200 OK"));
  client.send(get("/v1/completions", {}, "OPTIONS"));
  const std::string options = client.read_answer(false);
  EXPECT_THAT(options, StartsWith("HTTP/1.1 204"));
  EXPECT_THAT(options, HasSubstr("Allow: POST, OPTIONS"));
}

TEST(Server, serves_the_page_with_a_strict_policy) {
  TestServer server;
  const std::string page = ask(server.port, get("/"));
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(page, HasSubstr("Content-Security-Policy: default-src 'self'"));
  EXPECT_THAT(page, HasSubstr("Content-Type: text/html"));
  EXPECT_THAT(page, HasSubstr("<!doctype html>"));
  const auto etag = page.find("ETag: ") + 6;
  const std::string tag = page.substr(etag, page.find("\r\n", etag) - etag);
  RawClient client(server.port);
  client.send(get("/", "If-None-Match: " + tag + "\r\n"));
  EXPECT_THAT(client.read_answer(false), StartsWith("HTTP/1.1 304"));
  EXPECT_THAT(ask(server.port, get("/../../etc/passwd")), StartsWith("HTTP/1.1 404"));
}

TEST(Server, passes_on_request_ids_that_are_words) {
  TestServer server;
  EXPECT_THAT(ask(server.port, get("/health", "X-Request-Id: abc-1\r\n")),
              HasSubstr("X-Request-Id: abc-1\r\n"));
  EXPECT_THAT(ask(server.port, get("/health", "X-Request-Id: a b\r\n")),
              HasSubstr("X-Request-Id: req-"));
}

TEST(Server, asks_for_the_key_where_one_is_set) {
  ServerConfig config = test_config();
  config.api_key = "secret";
  TestServer server(say("Hello"), config);
  EXPECT_THAT(ask(server.port, chat()), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(ask(server.port, chat({}, "Authorization: Bearer secreT\r\n")),
              StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(ask(server.port, get("/v1/models")), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(ask(server.port, get("/metrics")), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(ask(server.port, chat({}, "Authorization: bearer secret\r\n")),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(ask(server.port, get("/health")), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(ask(server.port, get("/")), StartsWith("HTTP/1.1 200"));
}

TEST(Server, refuses_foreign_hosts_and_origins_on_loopback) {
  TestServer server;
  EXPECT_THAT(ask(server.port, "GET /health HTTP/1.1\r\nHost: evil.example:8080\r\n\r\n"),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(ask(server.port, "GET /health HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(ask(server.port, "GET /health HTTP/1.1\r\nHost: [::1]:9\r\n\r\n"),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(ask(server.port, chat({}, "Origin: https://evil.example\r\n")),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(ask(server.port, chat({}, "Origin: http://localhost:3000\r\n")),
              StartsWith("HTTP/1.1 200"));
}

TEST(Server, refuses_broken_requests_and_closes) {
  TestServer server;
  for (const std::string& request :
       {std::string("hello\r\n\r\n"), std::string("GET / HTTP/9.9\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nbad header\r\n\r\n"),
        std::string("\x16\x03\x01\x02\x00\r\n\r\n", 9),
        std::string(
            "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n"),
        std::string("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        std::string("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
                    "Content-Length: 6\r\n\r\nhello")}) {
    RawClient client(server.port);
    client.send(request);
    client.shutdown_send();
    const std::string answer = client.read_to_end();
    EXPECT_TRUE(client.at_end()) << request;
    if (!answer.empty()) {
      EXPECT_THAT(answer, StartsWith("HTTP/1.1 400")) << request;
      EXPECT_TRUE(json::accept(body_of(answer))) << answer;
    }
  }
  EXPECT_THAT(ask(server.port, get("/health")), StartsWith("HTTP/1.1 200"));
}

TEST(Server, refuses_large_headers_and_bodies_without_reading_them) {
  ServerConfig config = test_config();
  config.max_body_bytes = 1000;
  TestServer server(say("Hello"), config);
  EXPECT_THAT(ask(server.port, get("/health", "X-Long: " + std::string(40'000, 'a') + "\r\n")),
              StartsWith("HTTP/1.1 431"));
  RawClient declared(server.port);
  declared.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n");
  EXPECT_THAT(declared.read_answer(), StartsWith("HTTP/1.1 413"));
  RawClient chunked(server.port);
  chunked.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 50; ++i) chunked.send("64\r\n" + std::string(100, ' ') + "\r\n");
  EXPECT_THAT(chunked.read_answer(), StartsWith("HTTP/1.1 413"));
  // The client sees the answer though it is still sending.
  EXPECT_THAT(ask(server.port, post("/v1/completions", std::string(3'000'000, ' '))),
              StartsWith("HTTP/1.1 413"));
}

TEST(Server, bounds_the_bodies_of_all_connections_together) {
  ServerConfig config = test_config();
  config.max_held_body_bytes = 1000;
  TestServer server(say("Hello"), config);
  RawClient first(server.port);
  first.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n{");
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_THAT(ask(server.port, chat({}, "X-Pad: 1\r\n")), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(ask(server.port, post("/v1/completions", std::string(200, ' '))),
              StartsWith("HTTP/1.1 503"));
  first.close();
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_THAT(ask(server.port, post("/v1/completions", std::string(200, ' '))),
              StartsWith("HTTP/1.1 400"));
}

TEST(Server, takes_a_body_in_pieces_in_chunks_and_after_100_continue) {
  TestServer server;
  RawClient slow(server.port);
  for (const char byte : chat()) slow.send(std::string(1, byte));
  EXPECT_THAT(slow.read_answer(), StartsWith("HTTP/1.1 200"));
  const std::string body = chat_body();
  RawClient chunked(server.port);
  chunked.send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
      "chunked\r\n\r\n");
  for (const char byte : body) chunked.send("1\r\n" + std::string(1, byte) + "\r\n");
  chunked.send("0\r\n\r\n");
  EXPECT_THAT(chunked.read_answer(), StartsWith("HTTP/1.1 200"));
  RawClient waiting(server.port);
  waiting.send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
      "Content-Length: " +
      std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_THAT(waiting.read_answer(false), StartsWith("HTTP/1.1 100"));
  waiting.send(body);
  EXPECT_THAT(waiting.read_answer(), StartsWith("HTTP/1.1 200"));
}

TEST(Server, answers_pipelined_requests_in_order) {
  TestServer server([](const EngineRequest& request) {
    return std::vector<TokenId>{request.prompt.back(), FakeTokenizer::kEnd};
  });
  server.fake.engine->step_ms = 2;
  RawClient client(server.port);
  std::string all;
  for (char letter = 'a'; letter < 'k'; ++letter)
    all += post("/v1/completions", std::string(R"({"prompt":")") + letter + "\"}");
  client.send(all + get("/health"));
  for (char letter = 'a'; letter < 'k'; ++letter) {
    const json answer = json::parse(body_of(client.read_answer()));
    EXPECT_EQ(answer["choices"][0]["text"], std::string(1, letter));
  }
  EXPECT_THAT(client.read_answer(), HasSubstr("ok"));
}

TEST(Server, survives_requests_cut_at_every_byte) {
  TestServer server;
  const std::string request = chat();
  for (std::size_t size = 0; size < request.size(); ++size) {
    RawClient client(server.port);
    client.send(request.substr(0, size));
    if (size % 2 == 0) client.reset();
  }
  EXPECT_GE(server.wait_idle(), 0);
  EXPECT_THAT(ask(server.port, chat()), StartsWith("HTTP/1.1 200"));
}

TEST(Server, times_out_slow_headers_bodies_and_idle_connections) {
  ServerConfig config = test_config();
  config.header_timeout = config.body_stall = config.idle_timeout = milliseconds(100);
  TestServer server(say("Hello"), config);
  RawClient header(server.port);
  header.send("GET / HT");
  EXPECT_THAT(header.read_to_end(), StartsWith("HTTP/1.1 408"));
  EXPECT_TRUE(header.at_end());
  RawClient body(server.port);
  body.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{");
  EXPECT_THAT(body.read_to_end(), StartsWith("HTTP/1.1 408"));
  RawClient idle(server.port);
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_TRUE(idle.at_end());
}

TEST(Server, turns_connections_away_beyond_the_limit) {
  ServerConfig config = test_config();
  config.max_connections = 2;
  TestServer server(say("Hello"), config);
  RawClient first(server.port), second(server.port);
  first.send(get("/health"));
  second.send(get("/health"));
  first.read_answer();
  second.read_answer();
  RawClient third(server.port);
  EXPECT_THAT(third.read_answer(), StartsWith("HTTP/1.1 503"));
  first.close();
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_THAT(ask(server.port, get("/health")), StartsWith("HTTP/1.1 200"));
}

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
  const auto begin = std::chrono::steady_clock::now();
  server.server->drain();
  server.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(1500));
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
