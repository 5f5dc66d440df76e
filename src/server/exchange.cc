#include "server/exchange.h"

#include <atomic>
#include <mutex>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>

namespace dunlin {

// Where the engine's notifications arrive. It may be called a moment after the Exchange is gone,
// and must never be what destroys it: that would end a token stream inside its own callback.
struct Exchange::Signal {
  std::mutex post_mutex;                  // held while posting; run_advance() must not wait for it
  boost::asio::any_io_executor advancer;  // empty: closed
  std::weak_ptr<Exchange> exchange;
  std::atomic<bool> is_scheduled = false;
  std::atomic<bool> is_full = false;  // a slow reader: tokens wait in the engine's stream

  std::mutex mutex;                   // guards what follows, and changes of is_full
  std::size_t num_pending_bytes = 0;  // made, not yet taken by the connection
  std::optional<CallStats> stats;     // of the call, once it is taken in

  void advance_on(boost::asio::any_io_executor executor) {
    const std::lock_guard lock(post_mutex);
    advancer = std::move(executor);
  }
  void keep(const CallStats& so_far) {
    const std::lock_guard lock(mutex);
    stats = so_far;
  }
  void notify() {
    const std::lock_guard lock(post_mutex);
    if (!advancer || is_full || is_scheduled.exchange(true)) return;
    boost::asio::post(advancer, [weak = exchange] {
      if (const auto self = weak.lock()) self->run_advance();
    });
  }
};

Exchange::Exchange(ServerContext& context)
    : context_(context), signal_(std::make_shared<Signal>()) {}

Exchange::~Exchange() {
  const std::lock_guard lock(signal_->post_mutex);
  signal_->advancer = nullptr;
}

void Exchange::start(Route route, std::string body, const CallOrigin& origin,
                     std::function<void()> wake) {
  wake_ = std::move(wake);
  signal_->exchange = weak_from_this();
  boost::asio::post(context_.input_pool,
                    [self = shared_from_this(), route, origin, body = std::move(body)] {
                      self->run_start(route, body, origin);
                    });
}

namespace {

ApiResult<std::unique_ptr<ApiCall>> start_call(Route route, Session& session,
                                               const std::string& body, const CallOrigin& origin) {
  if (route == Route::kChat) return start_chat(session, body, origin);
  if (route == Route::kCompletions) return start_completion(session, body, origin);
  if (route == Route::kEmbeddings) return start_embedding(session, body, origin);
  return start_reset_prefix_cache(session);
}

}  // namespace

void Exchange::run_start(Route route, const std::string& body, const CallOrigin& origin) {
  auto call = start_call(route, context_.session, body, origin);
  std::optional<ApiError> error;
  if (call) {
    call_ = std::move(*call);
    if (call_->num_choices() > 0) {
      context_.metrics.record_start(call_->num_choices(), call_->max_tokens());
      signal_->keep(call_->stats());
    }
    signal_->advance_on(call_->is_streaming()
                            ? boost::asio::any_io_executor(context_.io.get_executor())
                            : context_.output_pool.get_executor());
    call_->on_ready([signal = signal_] { signal->notify(); });
  } else {
    error = std::move(call).error();
  }
  boost::asio::post(context_.io, [self = shared_from_this(), error = std::move(error)]() mutable {
    self->is_started_ = true;
    if (error) {
      self->error_ = std::move(error);
      self->is_done_ = true;
    } else {
      self->is_streaming_ = self->call_->is_streaming();
      if (self->is_cancelled_) self->call_->cancel();
      self->signal_->notify();
    }
    if (self->wake_) self->wake_();
  });
}

void Exchange::run_advance() {
  signal_->is_scheduled = false;  // before the look: what comes from now on is told again
  CallProgress progress = call_->advance();
  const CallStats stats = call_->stats();
  const bool generates = stats.num_choices > 0;
  if (generates && progress.done && !progress.error)
    context_.metrics.record_finish(stats.max_output_tokens);
  const bool has_more = progress.has_more;
  {
    const std::lock_guard lock(signal_->mutex);
    if (generates) signal_->stats = stats;
    signal_->num_pending_bytes += progress.bytes.size();
    signal_->is_full = signal_->num_pending_bytes > context_.config.max_pending_bytes;
  }
  if (!progress.bytes.empty() || progress.done) {
    boost::asio::dispatch(context_.io,
                          [self = shared_from_this(), progress = std::move(progress)]() mutable {
                            self->deliver(std::move(progress));
                          });
  }
  if (has_more) signal_->notify();
}

void Exchange::deliver(CallProgress progress) {
  if (is_done_) return;
  if (pending_.empty())
    pending_ = std::move(progress.bytes);
  else
    pending_ += progress.bytes;
  is_done_ = progress.done;
  if (progress.error) error_ = std::move(progress.error);
  if (wake_) wake_();
}

std::string Exchange::take_bytes() {
  std::string bytes = std::exchange(pending_, {});
  bool was_full = false;
  {
    const std::lock_guard lock(signal_->mutex);
    signal_->num_pending_bytes -= bytes.size();
    was_full = signal_->is_full;
    signal_->is_full = signal_->num_pending_bytes > context_.config.max_pending_bytes;
  }
  if (was_full) signal_->notify();
  return bytes;
}

void Exchange::cancel() {
  is_cancelled_ = true;
  if (is_started_ && call_) call_->cancel();
}

std::optional<CallStats> Exchange::stats() const {
  const std::lock_guard lock(signal_->mutex);
  return signal_->stats;
}

void Exchange::detach() { wake_ = nullptr; }

}  // namespace dunlin
