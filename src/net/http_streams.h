// Many HTTP requests at once, driven by one thread: libcurl over epoll, so that a thousand open
// connections cost no more than those on which something happens. Connections are used again.
//
// Not thread-safe: everything happens in the calls of one thread, handlers' functions in poll().
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "dunlin/status.h"

namespace dunlin {

struct HttpRequest {
  std::string url;           // http or https
  std::string body;          // JSON; "": GET
  std::string bearer_token;  // "": none
  std::chrono::milliseconds connect_timeout{20'000};
  std::chrono::milliseconds timeout{600'000};  // until the last byte
};

enum class HttpEndKind {
  kDone,      // the answer came whole, whatever its status
  kConnect,   // no connection: refused, unknown host, TLS
  kTimeout,   // it did not end in time
  kClosed,    // the connection ended before the answer did
  kProtocol,  // what came is no HTTP
  kHungUp,    // the handler wanted no more
};

struct HttpEnd {
  HttpEndKind kind = HttpEndKind::kDone;
  int status = 0;       // 0: no answer came
  std::string message;  // the reason where kind is not kDone
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Bytes of the answer's body, as they come. False hangs up: on_end follows.
  virtual bool on_bytes(int status, std::string_view bytes) = 0;
  virtual void on_end(const HttpEnd& end) = 0;  // once, the last call; may start a request
};

class HttpStreams {
 public:
  // `max_connections` are kept for use again. kUnimplemented where libcurl is not installed.
  static Result<std::unique_ptr<HttpStreams>> create(std::size_t max_connections);
  virtual ~HttpStreams() = default;  // drops what runs, without on_end

  // `handler` must live until its on_end. kInvalidArgument: the URL is none.
  virtual Outcome start(HttpRequest request, HttpHandler& handler) = 0;
  // Waits until something happens on a connection or `wake_fd` (-1: none) is readable, at most
  // `timeout`, and handles it.
  virtual void poll(std::chrono::milliseconds timeout, int wake_fd) = 0;
  virtual void drop_all() = 0;  // hangs up on what runs, without on_end
  virtual std::size_t num_running() const = 0;
};

}  // namespace dunlin
