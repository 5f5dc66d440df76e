#include "server/server.h"

#include <csignal>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "server/connection.h"
#include "server/http_response.h"
#include "server/port_holder.h"
#include "server/server_context.h"

namespace dunlin {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// After the grace time, for the last answers ("cancelled") to be written.
constexpr std::chrono::milliseconds kLastWords{1000};
// Connections wait for tokens on timers that never expire. While such a one is the next of all,
// each wait sets the system's timer anew, a call a token; one that expires before them spares that.
constexpr std::chrono::hours kAlwaysNext{1};
// Before the next try where the system has no file descriptor left.
constexpr std::chrono::milliseconds kAcceptPause{100};

Status bind_error(const error_code& error, const ServerConfig& config) {
  if (error == asio::error::address_in_use) {
    const auto holder = find_port_holder(config.port);
    const std::string by = holder ? fmt::format("{} (process {})", holder->name, holder->pid)
                                  : std::string("another process");
    const int other = config.port < 65535 ? config.port + 1 : 8080;
    return Status(
        StatusCode::kAlreadyExists,
        fmt::format("port {} is taken by {}; stop it, or choose another port with --port {}",
                    config.port, by, other));
  }
  if (error == asio::error::access_denied) {
    return Status(StatusCode::kPermissionDenied,
                  fmt::format("port {} needs more rights than this user has; choose one above 1023 "
                              "with --port 8080",
                              config.port));
  }
  return Status(
      StatusCode::kInvalidArgument,
      fmt::format("can't listen on {} port {}: {}", config.host, config.port, error.message()));
}

std::string url_of(const tcp::endpoint& endpoint) {
  asio::ip::address address = endpoint.address();
  // Where every address is listened on, this one works from here.
  std::string host = address.is_unspecified() ? "127.0.0.1" : address.to_string();
  if (address.is_v6() && !address.is_unspecified()) host = "[" + host + "]";
  return fmt::format("http://{}:{}", host, endpoint.port());
}

// The addresses of the host, those of IPv4 first.
Result<std::vector<tcp::endpoint>> resolve(asio::io_context& io, const ServerConfig& config) {
  tcp::resolver resolver(io);
  error_code error;
  const auto found =
      resolver.resolve(config.host, std::to_string(config.port),
                       tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error)
    return invalid(fmt::format("the host '{}' is not known: {}", config.host, error.message()));
  std::vector<tcp::endpoint> endpoints;
  for (const bool want_v4 : {true, false}) {
    for (const auto& entry : found) {
      if (entry.endpoint().address().is_v4() == want_v4) endpoints.push_back(entry.endpoint());
    }
  }
  return endpoints;
}

}  // namespace

struct HttpServer::Impl {
  Impl(Session& session, ServerConfig config)
      : context(session, std::move(config)),
        acceptor(context.io),
        accept_pause(context.io),
        grace_timer(context.io),
        next_timer(context.io),
        signals(context.io) {}

  ~Impl() {
    context.on_connection_closed = nullptr;
    context.input_pool.stop();
    context.input_pool.join();
    context.output_pool.stop();
    context.output_pool.join();
  }

  Outcome listen() {
    DUNLIN_ASSIGN(endpoints, resolve(context.io, context.config));
    error_code error = asio::error::host_not_found;
    for (const tcp::endpoint& endpoint : endpoints) {
      if (try_listen(endpoint, error)) {
        context.is_loopback = acceptor.local_endpoint().address().is_loopback();
        return {};
      }
    }
    return tl::unexpected<Status>(bind_error(error, context.config));
  }

  bool try_listen(const tcp::endpoint& endpoint, error_code& error) {
    error_code ignored;
    acceptor.close(ignored);
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    return !error;
  }

  void accept_next() {
    acceptor.async_accept([this](const error_code& error, tcp::socket socket) {
      if (error == asio::error::operation_aborted || context.draining) return;
      if (error) {
        accept_pause.expires_after(kAcceptPause);
        accept_pause.async_wait([this](const error_code& aborted) {
          if (!aborted && !context.draining) accept_next();
        });
        return;
      }
      if (context.connections.size() >= static_cast<std::size_t>(context.config.max_connections)) {
        turn_away(socket);
        context.metrics.record_answer("none", "other", 503);
      } else {
        start_connection(context, std::move(socket));
      }
      accept_next();
    });
  }

  // The answer fits a fresh socket's buffer, so this doesn't wait.
  static void turn_away(tcp::socket& socket) {
    const HttpResponse response = error_response({503, "too many connections; try again soon"});
    const std::string bytes =
        response_head(response, {false, false, pick_request_id({})}) + response.body;
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(bytes), ignored);
    socket.shutdown(tcp::socket::shutdown_send, ignored);
  }

  void keep_next_timer() {
    next_timer.expires_after(kAlwaysNext);
    next_timer.async_wait([this](const error_code& error) {
      if (!error) keep_next_timer();
    });
  }

  void wait_for_signal() {
    signals.async_wait([this](const error_code& error, int number) {
      if (error) return;
      if (context.draining) {
        exit_code = 128 + number;
        context.io.stop();
        return;
      }
      begin_drain();
      wait_for_signal();
    });
  }

  void begin_drain() {
    if (std::exchange(context.draining, true)) return;
    error_code ignored;
    acceptor.close(ignored);
    accept_pause.cancel();
    wind_down_all(false);
    grace_timer.expires_after(context.config.grace);
    grace_timer.async_wait([this](const error_code& error) {
      if (error) return;
      wind_down_all(true);
      grace_timer.expires_after(kLastWords);
      grace_timer.async_wait([this](const error_code& aborted) {
        if (!aborted) context.io.stop();
      });
    });
    stop_if_empty();
  }

  void wind_down_all(bool cancel_running) {
    for (Connection* connection : context.connections) wind_down(*connection, cancel_running);
  }

  void stop_if_empty() {
    if (context.draining && context.connections.empty()) context.io.stop();
  }

  ServerContext context;
  tcp::acceptor acceptor;
  asio::steady_timer accept_pause;
  asio::steady_timer grace_timer;
  asio::steady_timer next_timer;
  asio::signal_set signals;
  int exit_code = 0;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::create(Session& session, ServerConfig config) {
  auto impl = std::make_unique<Impl>(session, std::move(config));
  DUNLIN_TRY(impl->listen());
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  impl->context.start_unix_s = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  impl->context.on_connection_closed = [raw = impl.get()] { raw->stop_if_empty(); };
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

int HttpServer::port() const { return impl_->acceptor.local_endpoint().port(); }

int HttpServer::run() {
  Impl& impl = *impl_;
  if (impl.context.config.handle_signals) {
    error_code ignored;
    impl.signals.add(SIGINT, ignored);
    impl.signals.add(SIGTERM, ignored);
    impl.wait_for_signal();
  }
  impl.keep_next_timer();
  impl.accept_next();
  if (impl.context.config.on_listening) {
    const tcp::endpoint endpoint = impl.acceptor.local_endpoint();
    impl.context.config.on_listening(url_of(endpoint), endpoint.port());
  }
  impl.context.io.run();
  if (impl.context.config.on_stopped) impl.context.config.on_stopped(impl.exit_code);
  return impl.exit_code;
}

void HttpServer::drain() {
  boost::asio::post(impl_->context.io, [impl = impl_.get()] { impl->begin_drain(); });
}

void HttpServer::stop_now() { impl_->context.io.stop(); }

Result<int> serve(Session& session, ServerConfig config) {
  config.handle_signals = true;
  DUNLIN_ASSIGN(server, HttpServer::create(session, std::move(config)));
  return server->run();
}

}  // namespace dunlin
