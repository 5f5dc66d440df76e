// The lines of the log: what is in them, what never is, and that nobody waits for a reader.
#include "server/server_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/test_server.h"

namespace dunlin {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A pipe for the log to write into.
class Pipe {
 public:
  Pipe() {
    DUNLIN_CHECK(::pipe(ends_.data()) == 0, "no pipe");
    ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  int write_end() const { return ends_[1]; }
  // What is in it by now.
  std::string read() {
    std::string all(1 << 20, '\0');
    const ssize_t size = ::read(ends_[0], all.data(), all.size());
    all.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return all;
  }
  // The next line, waited for.
  std::string line() {
    for (int waited = 0; waited < 2000 && text_.find('\n') == std::string::npos; ++waited) {
      text_ += read();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const auto end = text_.find('\n');
    std::string line = text_.substr(0, end);
    text_ = end == std::string::npos ? "" : text_.substr(end + 1);
    return line;
  }

 private:
  std::array<int, 2> ends_{};
  std::string text_;
};

RequestRecord record() {
  RequestRecord record;
  record.request_id = "abc\"\\\x01";
  record.client = "192.0.2.1";
  record.method = "POST";
  record.path = "/v1/chat/completions";
  record.status = 200;
  record.total_s = 1.25;
  record.is_generation = true;
  record.call = CallStats{.num_choices = 1,
                          .num_prompt_tokens = 35,
                          .num_cached_tokens = 32,
                          .num_output_tokens = 120,
                          .num_chunks = 2,
                          .num_preemptions = 1,
                          .queue_time_s = .003,
                          .first_token_time_s = .21,
                          .finish = FinishReason::kLength};
  return record;
}

const auto kTime = std::chrono::system_clock::time_point(std::chrono::milliseconds(1500));

TEST(ServerLog, writes_a_record_as_one_line_of_json) {
  const std::string line = format_record(record(), "m\n", LogFormat::kJson, kTime);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(json::parse(line), json::parse(R"({
    "time": "1970-01-01T00:00:01.500Z", "level": "info", "event": "request",
    "request_id": "abc\"\\\u0001", "client": "192.0.2.1", "method": "POST",
    "path": "/v1/chat/completions", "status": 200, "total_time_s": 1.25, "model": "m\n",
    "stream": false, "choices": 1, "prompt_tokens": 35, "cached_tokens": 32, "output_tokens": 120,
    "queue_time_s": 0.003, "first_token_time_s": 0.21, "chunks": 2, "preemptions": 1,
    "finish_reason": "length"})"));
}

TEST(ServerLog, writes_a_record_as_text) {
  RequestRecord wanted = record();
  wanted.request_id = "abc";
  EXPECT_EQ(format_record(wanted, "m", LogFormat::kText, kTime),
            "1970-01-01T00:00:01.500Z POST /v1/chat/completions 200 1.250 s length prompt=35 "
            "cached=32 output=120 queue=0.003 first_token=0.210 chunks=2 preemptions=1 "
            "client=192.0.2.1 id=abc\n");
}

TEST(ServerLog, never_waits_for_a_reader_and_says_how_many_lines_were_lost) {
  Pipe pipe;
  ServerLog log(LogFormat::kJson, LogRequests::kGenerations, "m", pipe.write_end());
  for (int i = 0; i < 2000; ++i) log.request(record());  // more than a pipe holds
  std::string all = pipe.read();
  const auto num_lines = std::count(all.begin(), all.end(), '\n');
  EXPECT_GT(num_lines, 100);
  EXPECT_LT(num_lines, 2000);
  log.request(record());
  const json lost = json::parse(pipe.line());
  EXPECT_EQ(lost["event"], "dropped_lines");
  EXPECT_EQ(lost["lines"], 2000 - num_lines);
  EXPECT_EQ(json::parse(pipe.line())["event"], "request");
}

struct LoggingServer {
  explicit LoggingServer(LogRequests requests, FakeScript script = say("Hello"))
      : server(std::move(script), config(requests)) {}
  ServerConfig config(LogRequests requests) {
    ServerConfig config = test_config();
    config.log_format = LogFormat::kJson;
    config.log_requests = requests;
    config.log_descriptor = pipe.write_end();
    config.api_keys = {{"mine", "secret-key"}};
    return config;
  }
  static std::string key() { return "Authorization: Bearer secret-key\r\n"; }

  Pipe pipe;
  TestServer server;
};

TEST(ServerLog, tells_of_an_answer_without_what_was_said) {
  LoggingServer logging(LogRequests::kGenerations);
  ask(logging.server.port,
      post("/v1/chat/completions",
           R"({"messages":[{"role":"user","content":"a private matter"}],"n":2})",
           logging.key() + "X-Request-Id: {mine}/1\r\n"));
  const std::string line = logging.pipe.line();
  const json told = json::parse(line);
  EXPECT_EQ(told["request_id"], "{mine}/1");
  EXPECT_EQ(told["client"], "127.0.0.1");
  EXPECT_EQ(told["model"], "fake");
  EXPECT_EQ(told["api_key"], "mine");
  EXPECT_EQ(told["status"], 200);
  EXPECT_EQ(told["choices"], 2);
  EXPECT_EQ(told["output_tokens"], 12);  // five letters and the end, twice
  EXPECT_GT(told["prompt_tokens"], 0);
  EXPECT_EQ(told["finish_reason"], "stop");
  EXPECT_GT(told["total_time_s"], 0);
  for (const char* secret : {"private", "secret", "Hello"})
    EXPECT_THAT(line, Not(HasSubstr(secret)));
}

TEST(ServerLog, tells_of_refused_requests_and_of_clients_that_left) {
  LoggingServer logging(LogRequests::kGenerations, endless());
  logging.server.fake.engine->step_ms = 20;
  ask(logging.server.port, post("/v1/chat/completions", "{"));
  const json no_key = json::parse(logging.pipe.line());
  EXPECT_EQ(no_key["status"], 401);
  EXPECT_EQ(no_key["level"], "warning");
  ask(logging.server.port, post("/v1/completions", "{", logging.key()));
  const json broken = json::parse(logging.pipe.line());
  EXPECT_EQ(broken["status"], 400);
  EXPECT_FALSE(broken.contains("prompt_tokens"));
  {
    RawClient client(logging.server.port);
    client.send(post("/v1/completions", R"({"prompt":"a"})", logging.key()));
    ASSERT_TRUE(logging.server.wait_alive(1));
  }
  const json left = json::parse(logging.pipe.line());
  EXPECT_EQ(left["status"], 499);
  EXPECT_EQ(left["finish_reason"], "abort");
}

TEST(ServerLog, tells_of_everything_where_that_is_asked_for) {
  LoggingServer some(LogRequests::kGenerations), all(LogRequests::kAll);
  ask(some.server.port, get("/health"));
  ask(all.server.port, get("/health"));
  EXPECT_EQ(json::parse(all.pipe.line())["path"], "/health");
  ask(all.server.port, get("/secret?key=1"));
  EXPECT_EQ(json::parse(all.pipe.line())["path"], "none");
  RawClient client(all.server.port);
  client.send("nonsense\r\n\r\n");
  EXPECT_EQ(json::parse(all.pipe.line())["status"], 400);
  EXPECT_EQ(some.pipe.read(), "");
}

}  // namespace
}  // namespace dunlin
