// Requests and answers: routes, errors, limits of one connection.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "support/test_server.h"

namespace dunlin {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

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

// The objects of a stream, in order.
std::vector<json> events_of(const std::string& answer) {
  std::vector<json> events;
  for (std::size_t at = 0; (at = answer.find("data: {", at)) != std::string::npos; ++at) {
    events.push_back(json::parse(answer.substr(at + 6, answer.find('\n', at) - at - 6)));
  }
  return events;
}

// The file of a case in tests/cases/req, its grammar played by the script.
json case_body(const std::string& name) {
  std::ifstream in(DUNLIN_TESTS_DIR "/cases/req/" + name + ".json");
  json body = json::parse(in)["body"];
  body.erase("grammar");
  body["model"] = "fake";
  return body;
}

TEST(Server, cuts_at_a_stop_string_over_tokens_s1) {
  TestServer server(say("copper silver nickel cobalt zinc"));
  json body = case_body("s1_stop_spans_tokens");
  RawClient client(server.port);
  client.send(post("/v1/chat/completions", body.dump()));
  std::string text, reason;
  for (const json& event : events_of(client.read_until_text("[DONE]"))) {
    const json& choice = event["choices"][0];
    text += choice["delta"].value("content", "");
    EXPECT_TRUE(std::string("copper sil").starts_with(text)) << text;
    if (!choice["finish_reason"].is_null()) reason = choice["finish_reason"];
  }
  EXPECT_EQ(text, "copper sil");
  EXPECT_EQ(reason, "stop");
  body["stream"] = false;
  const json whole =
      json::parse(body_of(ask(server.port, post("/v1/chat/completions", body.dump()))));
  EXPECT_EQ(whole["choices"][0]["message"]["content"], "copper sil");
}

TEST(Server, streams_whole_characters_and_their_bytes_s4) {
  const std::string literal =
      "ok \U0001F469\u200D\U0001F469\u200D\U0001F467 \U00012000 \uFDFD \uD55C e\u0302 end";
  TestServer server(say(literal));
  RawClient client(server.port);
  client.send(post("/v1/chat/completions", case_body("s4_utf8_split").dump()));
  std::string text, bytes;
  for (const json& event : events_of(client.read_until_text("[DONE]"))) {
    const json& choice = event["choices"][0];
    const std::string content = choice["delta"].value("content", "");
    EXPECT_EQ(find_broken_utf8(content), content.size());
    EXPECT_EQ(content.find("\uFFFD"), std::string::npos);
    text += content;
    if (!choice.contains("logprobs") || choice["logprobs"].is_null()) continue;
    for (const json& token : choice["logprobs"]["content"]) {
      for (const int byte : token["bytes"]) bytes += static_cast<char>(byte);
    }
  }
  EXPECT_EQ(text, literal);
  EXPECT_EQ(bytes, literal);
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
  config.api_keys = {{"one", "other"}, {"two", "secret"}};
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

TEST(Server, resets_the_prefix_cache_for_who_has_the_key) {
  ServerConfig config = test_config();
  config.api_keys = {{"one", "secret"}};
  TestServer server(say("Hello"), config);
  EXPECT_THAT(ask(server.port, post("/reset_prefix_cache", "")), StartsWith("HTTP/1.1 401"));
  const std::string key = "Authorization: Bearer secret\r\n";
  EXPECT_THAT(ask(server.port, get("/reset_prefix_cache", key)), StartsWith("HTTP/1.1 405"));
  const std::string answer = ask(server.port, post("/reset_prefix_cache", "", key));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(json::parse(body_of(answer))["num_dropped_blocks"], 7);
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

TEST(Server, refuses_endless_trailers_and_chunk_extensions) {
  TestServer server;
  const std::string head =
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  // Beast throws at a field of 64 KiB.
  for (const std::size_t size : {65'520, 65'536, 70'000, 3'000'000}) {
    const std::string filler(size, 'a');
    EXPECT_THAT(ask(server.port, head + "2\r\n{}\r\n0\r\nA: " + filler + "\r\n\r\n"),
                StartsWith(size < 65'530 ? "HTTP/1.1 400" : "HTTP/1.1 431"));
  }
  EXPECT_THAT(ask(server.port, head + "2;" + std::string(3'000'000, 'a')),
              StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(ask(server.port, get("/health")), StartsWith("HTTP/1.1 200"));
}

TEST(Server, refuses_transfer_codings_that_it_does_not_know) {
  TestServer server;
  const std::string smuggled = get("/version");
  for (const std::string head : {"1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked",
                                 "1.1\r\nHost: localhost\r\n"
                                 "Transfer-Encoding: gzip, chunked",
                                 "1.0\r\nTransfer-Encoding: chunked"}) {
    RawClient client(server.port);
    client.send("POST /v1/completions HTTP/" + head + "\r\n\r\n0\r\n\r\n" + smuggled);
    const std::string answer = client.read_to_end();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 501")) << head;
    EXPECT_THAT(answer, testing::Not(HasSubstr("1.2.3"))) << head;
  }
  EXPECT_THAT(ask(server.port,
                  "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                  "Transfer-Encoding: Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"),
              HasSubstr("prompt is missing"));
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

}  // namespace
}  // namespace dunlin
