#include "server/connection.h"

#include <array>
#include <chrono>
#include <utility>

#include <poll.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>

#include "server/body_lease.h"
#include "server/exchange.h"
#include "server/http_response.h"
#include "server/parse_error.h"
#include "server/request_handler.h"

namespace dunlin {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::awaitable;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
using Parser = http::request_parser<http::string_body>;

// Every byte of a request that is refused half-read is drained for so long, so that the client sees
// the answer and not a reset.
constexpr milliseconds kLingerTime{1000};
constexpr std::size_t kLingerBytes = 64 << 20;
// Bytes read and not parsed yet. Headers have a lower limit of their own; this one is for trailers
// and chunk extensions. Beast throws where a field takes 64 KiB, which doesn't fit in here.
constexpr std::size_t kBufferBytes = 64 << 10;
// The status of an answer that nobody was there for.
constexpr int kClientGone = 499;

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

// A rule for the coroutines below: no braced temporaries in an expression with co_await. GCC 12
// destroys those twice.

}  // namespace

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(ServerContext& context, asio::ip::tcp::socket socket)
      : context_(context),
        config_(context.config),
        socket_(std::move(socket)),
        deadline_(context.io),
        changed_(context.io) {
    context_.connections.insert(this);
  }

  ~Connection() {
    context_.connections.erase(this);
    if (context_.on_connection_closed) context_.on_connection_closed();
  }

  awaitable<void> run() {
    error_code ignored;
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    socket_.non_blocking(true, ignored);  // write() counts on it
    while (co_await serve_one()) {
    }
    disarm();
    socket_.close(ignored);
  }

  void wind_down(bool cancel_running) {
    if (is_idle_) {
      error_code ignored;
      socket_.cancel(ignored);
    }
    if (cancel_running && exchange_) exchange_->cancel();
  }

 private:
  // One request and its answer; false where the connection is to be closed.
  awaitable<bool> serve_one() {
    if (!co_await wait_for_request()) co_return false;
    begin_ = std::chrono::steady_clock::now();
    record_ = RequestRecord();
    is_head_ = false;
    Parser parser;
    parser.header_limit(static_cast<std::uint32_t>(config_.max_header_bytes));
    parser.body_limit(config_.max_body_bytes);

    arm(config_.header_timeout);
    auto [header_error, header_bytes] =
        co_await http::async_read_header(socket_, buffer_, parser, kAwait);
    disarm();
    if (header_error) {
      info_ = HeadInfo{false, false, pick_request_id({})};
      co_return co_await refuse_bytes(header_error);
    }

    const auto& message = parser.get();
    info_.http_1_0 = message.version() < 11;
    info_.keep_alive = message.keep_alive() && !context_.draining;
    info_.request_id = pick_request_id(view(message["X-Request-Id"]));
    RequestView request;
    request.method = view(message.method_string());
    request.target = view(message.target());
    request.host = view(message[http::field::host]);
    request.origin = view(message[http::field::origin]);
    request.authorization = view(message[http::field::authorization]);
    request.transfer_encoding = view(message[http::field::transfer_encoding]);
    request.if_none_match = view(message[http::field::if_none_match]);
    request.http_1_0 = info_.http_1_0;
    request.api_key_idx = find_api_key(config_.api_keys, request.authorization);
    CallOrigin origin;
    origin.tenant = request.api_key_idx.value_or(0);
    if (const auto key = request.api_key_idx)
      record_.api_key = config_.api_keys[static_cast<std::size_t>(*key)].name;
    const RouteMatch match = find_route(request.target);
    record_.path = path_label(match.route);
    record_.method = method_label(request.method);
    record_.is_generation = uses_model(match.route);
    is_head_ = request.method == "HEAD";
    if (auto refused = check_request(context_, request, match))
      co_return co_await respond(std::move(*refused),
                                 parser.is_done() && request.transfer_encoding.empty());

    BodyLease lease(context_);
    const bool has_length = parser.content_length().has_value();
    if (!parser.is_done() &&
        !lease.take(has_length ? *parser.content_length() : config_.max_body_bytes)) {
      HttpResponse busy = error_response({503, "too many large requests at once; try again soon"});
      co_return co_await respond(std::move(busy), false);
    }
    if (!co_await read_body(parser)) co_return false;

    if (is_call(match.route))
      co_return co_await answer_call(match.route, std::move(parser.get().body()), origin, lease);
    HttpResponse answer = answer_simple(context_, request, match);
    co_return co_await respond(std::move(answer), true);
  }

  // The first byte of the next request; the time for it is idle time.
  awaitable<bool> wait_for_request() {
    if (context_.draining) co_return false;
    if (buffer_.size() > 0) co_return true;
    is_idle_ = true;
    arm(config_.idle_timeout);
    auto [error, size] = co_await socket_.async_read_some(buffer_.prepare(4096), kAwait);
    disarm();
    is_idle_ = false;
    if (error) co_return false;
    buffer_.commit(size);
    co_return true;
  }

  awaitable<bool> refuse_bytes(const error_code& error) {
    std::optional<ApiError> problem = parse_error(error, config_);
    if (timed_out_) problem = ApiError{408, "the request did not arrive in time"};
    if (!problem) co_return false;
    HttpResponse refusal = error_response(*problem);
    co_return co_await respond(std::move(refusal), false);
  }

  // False where it did not come; an answer has been sent then where one was due.
  awaitable<bool> read_body(Parser& parser) {
    if (parser.is_done()) co_return true;
    if (view(parser.get()[http::field::expect]) == "100-continue" && !info_.http_1_0) {
      if (!co_await write("HTTP/1.1 100 Continue\r\n\r\n")) co_return false;
    }
    const auto end = std::chrono::steady_clock::now() + config_.body_timeout;
    while (!parser.is_done()) {
      const auto left =
          std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
      arm(std::min(config_.body_stall, std::max(left, milliseconds(1))));
      auto [error, size] = co_await http::async_read_some(socket_, buffer_, parser, kAwait);
      disarm();
      if (error) {
        co_await refuse_bytes(error);
        co_return false;
      }
    }
    co_return true;
  }

  awaitable<bool> respond(HttpResponse response, bool request_was_read) {
    if (!request_was_read) info_.keep_alive = false;
    const std::string head = response_head(response, info_);
    const std::string_view body =
        is_head_ || response.status == 304 ? std::string_view() : response.content();
    const bool is_written = co_await write(head, body);
    note_end(response.status);
    if (!is_written) co_return false;
    if (info_.keep_alive) co_return true;
    co_await linger();
    co_return false;
  }

  void note_end(int status) {
    error_code error;
    const auto peer = socket_.remote_endpoint(error);
    if (!error) record_.client = peer.address().to_string();
    record_.request_id = info_.request_id;
    record_.status = status;
    const auto taken = std::chrono::steady_clock::now() - begin_;
    record_.total_s = std::chrono::duration<double>(taken).count();
    context_.metrics.record_answer(record_.path, record_.method, status);
    context_.log.request(record_);
  }

  // Starts the call and writes what comes of it, watching meanwhile whether the client is there.
  awaitable<bool> answer_call(Route route, std::string body, CallOrigin origin, BodyLease& lease) {
    exchange_ = std::make_shared<Exchange>(context_);
    client_gone_ = false;
    exchange_->start(route, std::move(body), origin, [this] { changed_.cancel(); });
    is_watching_ = true;
    asio::co_spawn(context_.io, watch_client(shared_from_this()), asio::detached);

    while (!exchange_->is_started() && !client_gone_) co_await wait_for_change();
    lease.release();
    bool is_ok = false;
    status_ = kClientGone;
    if (!client_gone_)
      is_ok = exchange_->is_streaming() ? co_await stream_answer() : co_await whole_answer();
    exchange_->cancel();
    exchange_->detach();
    record_.call = exchange_->stats();
    record_.is_streaming = exchange_->is_streaming();
    exchange_.reset();
    note_end(status_);
    co_await stop_watching();
    if (!is_ok || client_gone_) co_return false;
    if (info_.keep_alive) co_return true;
    co_await linger();
    co_return false;
  }

  awaitable<bool> whole_answer() {
    while (!exchange_->is_done() && !client_gone_) co_await wait_for_change();
    if (client_gone_) co_return false;
    HttpResponse response;
    if (exchange_->error()) {
      response = error_response(*exchange_->error());
    } else {
      response.body = exchange_->take_bytes();
    }
    if (context_.draining) info_.keep_alive = false;
    status_ = response.status;
    const std::string head = response_head(response, info_);
    co_return co_await write(head, response.content());
  }

  awaitable<bool> stream_answer() {
    if (info_.http_1_0) info_.keep_alive = false;
    std::string head = stream_head(info_);
    while (true) {
      while (!exchange_->has_bytes() && !exchange_->is_done() && !client_gone_ && head.empty())
        co_await wait_for_change();
      if (client_gone_) co_return false;
      status_ = 200;
      const bool is_last = exchange_->is_done();
      std::string before = std::exchange(head, {});
      std::string data = exchange_->take_bytes();
      if (!data.empty() && !info_.http_1_0) {
        before += chunk_begin(data.size());
        data += kChunkEnd;
      }
      if (is_last && !info_.http_1_0) data += kLastChunk;
      if (!co_await write(before, data)) co_return false;
      if (is_last) co_return true;
    }
  }

  // Reads while an answer runs: the next requests of a client that doesn't wait, or the end of the
  // connection. A half-close counts as gone.
  static awaitable<void> watch_client(std::shared_ptr<Connection> self) {
    while (self->is_watching_ && !self->client_gone_) {
      if (self->buffer_.size() >= std::min(self->config_.max_pipelined_bytes, kBufferBytes)) {
        co_await self->watch_without_reading();
        continue;
      }
      const std::size_t room = self->buffer_.max_size() - self->buffer_.size();
      auto [error, size] = co_await self->socket_.async_read_some(
          self->buffer_.prepare(std::min<std::size_t>(room, 4096)), kAwait);
      if (size > 0) self->buffer_.commit(size);
      if (error && self->is_watching_ && !(error == asio::error::operation_aborted))
        self->client_gone_ = true;
      if (error) break;
    }
    self->is_watching_ = false;
    self->watch_ended_ = true;
    self->changed_.cancel();
  }

  // Where too much was read ahead: the system is asked whether the other side has closed.
  awaitable<void> watch_without_reading() {
    pollfd descriptor{socket_.native_handle(), POLLRDHUP, 0};
    if (::poll(&descriptor, 1, 0) > 0 &&
        (descriptor.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
      client_gone_ = true;
      co_return;
    }
    asio::steady_timer pause(context_.io, milliseconds(250));
    co_await pause.async_wait(kAwait);
  }

  awaitable<void> stop_watching() {
    is_watching_ = false;
    error_code ignored;
    socket_.cancel(ignored);
    while (!watch_ended_) co_await wait_for_change();
    watch_ended_ = false;
  }

  awaitable<void> wait_for_change() {
    changed_.expires_at(asio::steady_timer::time_point::max());
    co_await changed_.async_wait(kAwait);
  }

  // Writes all of it; a pause longer than write_stall ends the connection. The socket mostly takes
  // everything at once: the timer and the reactor come in only where it doesn't.
  awaitable<bool> write(std::string_view first, std::string_view second = {}) {
    std::array<asio::const_buffer, 2> buffers{asio::buffer(first), asio::buffer(second)};
    while (buffers[0].size() + buffers[1].size() > 0) {
      error_code error;
      std::size_t size = socket_.write_some(buffers, error);
      if (error == asio::error::would_block) {
        arm(config_.write_stall);
        auto [wait_error] = co_await socket_.async_wait(asio::socket_base::wait_write, kAwait);
        error = wait_error;
        disarm();
      }
      if (error) co_return false;
      const std::size_t from_first = std::min(size, buffers[0].size());
      buffers[0] += from_first;
      buffers[1] += size - from_first;
    }
    co_return true;
  }

  awaitable<void> linger() {
    error_code error;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, error);
    std::size_t drained = 0;
    buffer_.clear();
    arm(kLingerTime);
    while (!error && !timed_out_ && drained < kLingerBytes) {
      auto [read_error, size] = co_await socket_.async_read_some(buffer_.prepare(65536), kAwait);
      error = read_error;
      drained += size;
    }
    disarm();
  }

  // One deadline at a time: when it passes, whatever the socket waits for ends with an error.
  void arm(milliseconds duration) {
    timed_out_ = false;
    deadline_.expires_after(duration);
    deadline_.async_wait([self = shared_from_this()](const error_code& error) {
      // A timer that fired before it was disarmed arrives with a deadline in the future.
      if (error || self->deadline_.expiry() > std::chrono::steady_clock::now()) return;
      self->timed_out_ = true;
      error_code ignored;
      self->socket_.cancel(ignored);
    });
  }
  void disarm() { deadline_.expires_at(asio::steady_timer::time_point::max()); }

  ServerContext& context_;
  const ServerConfig& config_;
  asio::ip::tcp::socket socket_;
  asio::steady_timer deadline_;
  asio::steady_timer changed_;  // never expires; cancelled to say that something changed
  boost::beast::flat_buffer buffer_{kBufferBytes};
  HeadInfo info_;
  std::shared_ptr<Exchange> exchange_;  // while a call runs
  RequestRecord record_;                // of the request that is being answered
  std::chrono::steady_clock::time_point begin_;
  int status_ = 0;  // of the call's answer
  bool is_head_ = false;
  bool is_idle_ = false;
  bool timed_out_ = false;
  bool client_gone_ = false;
  bool is_watching_ = false;
  bool watch_ended_ = false;
};

void start_connection(ServerContext& context, asio::ip::tcp::socket socket) {
  auto connection = std::make_shared<Connection>(context, std::move(socket));
  asio::co_spawn(
      context.io, [connection]() -> awaitable<void> { co_await connection->run(); },
      asio::detached);
}

void wind_down(Connection& connection, bool cancel_running) {
  connection.wind_down(cancel_running);
}

}  // namespace dunlin
