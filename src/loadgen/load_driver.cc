#include "loadgen/load_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "loadgen/answer_reader.h"

namespace dunlin::loadgen {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kTick{100};  // between looks at progress

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

struct Counters {
  std::size_t finished = 0, failed = 0, running = 0;
};

// One request under way.
class Client final : public HttpHandler {
 public:
  Client(const LoadRequest& request, RequestRecord& record, Counters& counters)
      : request_(request), record_(record), counters_(counters), reader_(record) {
    record_.prompt_tokens = request.prompt_len;
    ++counters_.running;
  }

  void begin() { sent_ = Clock::now(); }

  bool on_bytes(int status, std::string_view bytes) override {
    if (!reader_.push(status, bytes, elapsed_s())) return false;
    const int leave_after = request_.leave_after_pieces;
    if (leave_after < 0 || record_.num_pieces() < leave_after) return true;
    end_with(Failure::kLeft, {});
    return false;
  }

  void on_end(const HttpEnd& end) override {
    record_.http_status = end.status;
    switch (end.kind) {
      case HttpEndKind::kDone: reader_.finish(end.status); break;
      case HttpEndKind::kHungUp:  // the reader has said why, but for a long error body
        reader_.finish(end.status);
        break;
      case HttpEndKind::kConnect: end_with(Failure::kConnect, end.message); break;
      case HttpEndKind::kTimeout:
        end_with(request_.leave_after_ms >= 0 ? Failure::kLeft : Failure::kTimeout, end.message);
        break;
      case HttpEndKind::kClosed: end_with(Failure::kClosed, end.message); break;
      case HttpEndKind::kProtocol: end_with(Failure::kBadAnswer, end.message); break;
    }
    settle();
  }

  // Ctrl-C came first.
  void interrupt() {
    if (is_settled_) return;
    end_with(Failure::kInterrupted, {});
    settle();
  }

 private:
  double elapsed_s() const { return seconds_between(sent_, Clock::now()); }

  void end_with(Failure failure, std::string message) {
    if (!record_.is_ok()) return;
    record_.failure = failure;
    record_.message = std::move(message);
  }

  void settle() {
    is_settled_ = true;
    record_.end_s = elapsed_s();
    if (!record_.has_usage) record_.output_tokens = record_.num_pieces();
    --counters_.running;
    ++counters_.finished;
    if (!record_.is_ok() && record_.failure != Failure::kLeft) ++counters_.failed;
  }

  const LoadRequest& request_;
  RequestRecord& record_;
  Counters& counters_;
  AnswerReader reader_;
  Clock::time_point sent_;
  bool is_settled_ = false;
};

HttpRequest http_request(const LoadRequest& request, const LoadOptions& options) {
  HttpRequest http;
  http.url = options.url;
  http.bearer_token = options.api_key;
  http.body = request_body(request, options.body);
  http.connect_timeout = options.connect_timeout;
  http.timeout = options.timeout;
  if (request.leave_after_ms >= 0) http.timeout = milliseconds(request.leave_after_ms);
  return http;
}

// Takes an answer whole.
class WholeAnswer final : public HttpHandler {
 public:
  bool on_bytes(int, std::string_view bytes) override {
    constexpr std::size_t kMaxBytes = 1 << 20;
    if (body.size() < kMaxBytes) body += bytes;
    return true;
  }
  void on_end(const HttpEnd& answer_end) override { end = answer_end; }

  std::string body;
  HttpEnd end;
};

}  // namespace

LoadRun run_load(HttpStreams& streams, const std::vector<LoadRequest>& workload,
                 const LoadOptions& options, const LoadWatch& watch) {
  const std::size_t most =
      options.concurrency > 0 ? static_cast<std::size_t>(options.concurrency) : workload.size();
  LoadRun run;
  run.records.reserve(workload.size());  // clients hold references
  std::vector<std::unique_ptr<Client>> clients;
  Counters counters;
  const Clock::time_point begin = Clock::now();
  Clock::time_point next_look = begin;
  while (counters.finished < workload.size() && !run.interrupted) {
    double now = seconds_between(begin, Clock::now());
    while (run.records.size() < workload.size() && counters.running < most &&
           workload[run.records.size()].arrival_s <= now) {
      const LoadRequest& request = workload[run.records.size()];
      HttpRequest http = http_request(request, options);
      RequestRecord& record = run.records.emplace_back();
      record.index = run.records.size() - 1;
      record.start_s = now = seconds_between(begin, Clock::now());
      clients.push_back(std::make_unique<Client>(request, record, counters));
      clients.back()->begin();
      if (const Outcome started = streams.start(std::move(http), *clients.back()); !started)
        clients.back()->on_end({HttpEndKind::kConnect, 0, started.error().message()});
    }
    milliseconds wait = kTick;
    if (run.records.size() < workload.size() && counters.running < most) {
      const double left = workload[run.records.size()].arrival_s - now;
      wait = milliseconds(
          std::clamp<std::int64_t>(static_cast<std::int64_t>(left * 1000), 0, kTick.count()));
    }
    streams.poll(wait, watch.wake_fd);
    run.interrupted = watch.should_stop && watch.should_stop();
    if (Clock::now() < next_look) continue;
    next_look = Clock::now() + kTick;
    if (watch.on_progress)
      watch.on_progress({workload.size(), counters.finished, counters.failed, counters.running});
  }
  if (run.interrupted) streams.drop_all();
  for (const auto& client : clients) client->interrupt();
  for (const RequestRecord& record : run.records)
    run.duration_s = std::max(run.duration_s, record.start_s + record.end_s);
  if (!run.records.empty()) run.duration_s -= run.records.front().start_s;
  return run;
}

Result<HttpAnswer> ask(HttpStreams& streams, HttpRequest request) {
  WholeAnswer answer;
  DUNLIN_TRY(streams.start(std::move(request), answer));
  while (streams.num_running() > 0) streams.poll(kTick, -1);
  if (answer.end.kind != HttpEndKind::kDone)
    return fail(StatusCode::kUnavailable, answer.end.message);
  return HttpAnswer{answer.end.status, std::move(answer.body)};
}

}  // namespace dunlin::loadgen
