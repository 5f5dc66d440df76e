// One API request on its way through the threads: its body goes to the input pool. What it streams
// is made on the I/O thread, since a token's few microseconds are less than a change of threads
// costs; a whole answer, which may be long, in the output pool. Include it in server/*.cc only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/api_call.h"
#include "server/routes.h"
#include "server/server_context.h"

namespace dunlin {

// All public members: I/O thread only.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  explicit Exchange(ServerContext& context);
  ~Exchange();

  // `wake` is called on the I/O thread whenever anything below has changed.
  void start(Route route, std::string body, const CallOrigin& origin, std::function<void()> wake);
  // The client is gone, or the server stops: the engine's requests are aborted, wherever they are.
  void cancel();
  // No more wake(): the connection has done with it.
  void detach();

  // What has become of it so far; nullopt: it was not taken in.
  std::optional<CallStats> stats() const;
  bool is_started() const { return is_started_; }  // parsed: error() or an answer follows
  bool is_streaming() const { return is_streaming_; }
  bool is_done() const { return is_done_; }
  const std::optional<ApiError>& error() const { return error_; }
  bool has_bytes() const { return !pending_.empty(); }
  // What has come so far. Lets tokens flow again where they waited for a slow reader.
  std::string take_bytes();

 private:
  struct Signal;

  void run_start(Route route, const std::string& body, const CallOrigin& origin);  // input pool
  void run_advance();                   // I/O thread where it streams, else the output pool
  void deliver(CallProgress progress);  // I/O thread

  ServerContext& context_;
  std::shared_ptr<Signal> signal_;
  std::function<void()> wake_;
  bool is_started_ = false;
  bool is_streaming_ = false;
  bool is_done_ = false;
  bool is_cancelled_ = false;
  std::optional<ApiError> error_;
  std::string pending_;
  // Made in the input pool; from then on advanced in one place only. The I/O thread may call its
  // cancel() once is_started_.
  std::unique_ptr<ApiCall> call_;
};

}  // namespace dunlin
