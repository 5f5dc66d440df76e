// What the server's tests share: a server over a fake engine, and requests as text.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "server/server.h"
#include "support/fake_session.h"
#include "support/raw_client.h"

namespace dunlin {

inline ServerConfig test_config() {
  ServerConfig config;
  config.port = 0;
  config.version = "1.2.3";
  config.grace = std::chrono::milliseconds(300);
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
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return -1;
  }
  bool wait_alive(int num, int timeout_ms = 2000) {
    for (int waited = 0; waited < timeout_ms; ++waited) {
      if (fake.engine->num_alive() == num) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
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

inline std::string get(const std::string& path, const std::string& headers = {},
                       const std::string& method = "GET") {
  return method + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headers + "\r\n";
}
inline std::string post(const std::string& path, const std::string& body,
                        const std::string& headers = {}) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         headers + "\r\n" + body;
}
inline std::string chat_body(const std::string& fields = {}) {
  return R"({"messages":[{"role":"user","content":"hi"}])" + fields + "}";
}
inline std::string chat(const std::string& fields = {}, const std::string& headers = {}) {
  return post("/v1/chat/completions", chat_body(fields), headers);
}
inline std::string body_of(const std::string& answer) {
  return answer.substr(answer.find("\r\n\r\n") + 4);
}

inline std::string ask(int port, const std::string& request) {
  RawClient client(port);
  client.send(request);
  return client.read_answer();
}

inline FakeScript endless() {
  return [](const EngineRequest&) { return std::vector<TokenId>(); };
}

}  // namespace dunlin
