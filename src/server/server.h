// The HTTP server: OpenAI's endpoints, health, metrics and the page over one Session.
//
// One thread does all input and output (the one that calls run()), two parse and tokenise, one
// turns tokens into events. Nobody runs while nothing happens.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dunlin/status.h"
#include "frontend/session.h"
#include "server/api_keys.h"
#include "server/server_log.h"

namespace dunlin {

struct ServerConfig {
  std::string host = "127.0.0.1";  // a name or an address; only loopback is reached by nobody else
  int port = 8080;                 // 0: any free one
  std::vector<ApiKey> api_keys;    // none: none asked. Health and the page stay open.
  std::string version = "0";       // what /version says

  std::chrono::milliseconds grace{10'000};           // for running answers after the first signal
  std::chrono::milliseconds idle_timeout{75'000};    // an open connection without a request
  std::chrono::milliseconds header_timeout{10'000};  // first byte to last byte of the headers
  std::chrono::milliseconds body_stall{15'000};      // longest pause while a body comes
  std::chrono::milliseconds body_timeout{300'000};   // and the whole body
  std::chrono::milliseconds write_stall{30'000};  // a reader that takes nothing for so long is gone

  int max_connections = 1024;
  std::size_t max_header_bytes = 32 << 10;
  std::size_t max_body_bytes = 16 << 20;
  std::size_t max_held_body_bytes = 256 << 20;  // of all connections together
  std::size_t max_pending_bytes = 256 << 10;    // events a slow reader has not taken yet
  std::size_t max_pipelined_bytes = 64 << 10;   // read ahead while an answer runs

  LogFormat log_format = LogFormat::kText;
  LogRequests log_requests = LogRequests::kNone;
  int log_descriptor = 2;

  // Called by run() when every answer is out or given up, with run()'s result. What is left then is
  // to wait for the engine's step and the pools; a program that has nothing to save may end here.
  std::function<void(int exit_code)> on_stopped;
  bool handle_signals = false;  // SIGINT and SIGTERM: drain, a second one stops at once
  // Told once, when connections are accepted: the URL and the port.
  std::function<void(const std::string& url, int port)> on_listening;
};

class HttpServer {
 public:
  // Binds and listens. kAlreadyExists where the port is taken, naming by whom where that can be
  // seen; kInvalidArgument for a host that can't be bound. `session` must outlive the server.
  static Result<std::unique_ptr<HttpServer>> create(Session& session, ServerConfig config);
  ~HttpServer();

  int port() const;
  // Serves until stopped; 0, or 128 + signal where a second signal cut it short.
  int run();

  // Any thread. Stops accepting, lets running answers finish within the grace time, cancels the
  // rest; run() then returns.
  void drain();
  void stop_now();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// create() and run() with signals handled: what `dunlin serve` does after opening the model.
Result<int> serve(Session& session, ServerConfig config);

}  // namespace dunlin
