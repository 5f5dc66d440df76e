// What the server's connections share. Boost.Asio's types are in here: include it in server/*.cc
// only.
#pragma once

#include <functional>
#include <unordered_set>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include "server/metrics.h"
#include "server/server.h"
#include "server/server_log.h"

namespace dunlin {

class Connection;

struct ServerContext {
  ServerContext(Session& session_in, ServerConfig config_in)
      : session(session_in),
        config(std::move(config_in)),
        metrics(session.config().model_name),
        log(config.log_format, config.log_requests, session.config().model_name,
            config.log_descriptor) {}

  Session& session;
  const ServerConfig config;
  Metrics metrics;
  ServerLog log;  // the I/O thread's
  std::int64_t start_unix_s = 0;
  bool is_loopback = true;  // nobody outside this machine can connect

  // Touched on the I/O thread only.
  std::unordered_set<Connection*> connections;
  std::size_t held_body_bytes = 0;
  bool draining = false;
  std::function<void()> on_connection_closed;

  // Declared last and so destroyed first: handlers that never ran hold what stands above.
  boost::asio::thread_pool input_pool{2};   // parsing, templates, tokenising
  boost::asio::thread_pool output_pool{1};  // whole answers
  boost::asio::io_context io{1};
};

}  // namespace dunlin
