#include "server/server_log.h"

#include <poll.h>
#include <unistd.h>

#include <cmath>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dunlin {
namespace {

using Json = nlohmann::ordered_json;
using Time = std::chrono::system_clock::time_point;

// A pipe that can be written to at all takes so much at once.
constexpr std::size_t kMaxLine = 4096;

std::string time_text(Time now) {
  const auto since = now.time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(since).count() % 1000;
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), ms);
}

// vLLM's words for it, which are those of the metrics.
std::string_view finish_text(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kError: return "error";
    default: return "abort";
  }
}

std::string_view level_of(int status) {
  return status >= 500 ? "error" : status >= 400 ? "warning" : "info";
}

std::string json_line(const Json& object) {
  return object.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
}

// Rounded to microseconds, so that no line is long for nothing.
double rounded(double seconds) { return std::round(seconds * 1e6) / 1e6; }

Json json_record(const RequestRecord& record, std::string_view model, Time now) {
  Json out = {{"time", time_text(now)},
              {"level", level_of(record.status)},
              {"event", "request"},
              {"request_id", record.request_id},
              {"client", record.client},
              {"method", record.method},
              {"path", record.path},
              {"status", record.status},
              {"total_time_s", rounded(record.total_s)}};
  if (!record.api_key.empty()) out["api_key"] = record.api_key;
  if (!record.call) return out;
  const CallStats& call = *record.call;
  out.update(
      Json{{"model", model},
           {"stream", record.is_streaming},
           {"choices", call.num_choices},
           {"prompt_tokens", call.num_prompt_tokens},
           {"cached_tokens", call.num_cached_tokens},
           {"output_tokens", call.num_output_tokens},
           {"queue_time_s", rounded(call.queue_time_s)},
           {"first_token_time_s",
            call.first_token_time_s > 0 ? Json(rounded(call.first_token_time_s)) : Json(nullptr)},
           {"chunks", call.num_chunks},
           {"preemptions", call.num_preemptions},
           {"finish_reason", finish_text(call.finish)}});
  return out;
}

std::string text_record(const RequestRecord& record, Time now) {
  std::string line = fmt::format("{} {} {} {} {:.3f} s", time_text(now), record.method, record.path,
                                 record.status, record.total_s);
  if (record.call) {
    const CallStats& call = *record.call;
    line += fmt::format(" {} prompt={} cached={} output={} queue={:.3f} first_token={:.3f}",
                        finish_text(call.finish), call.num_prompt_tokens, call.num_cached_tokens,
                        call.num_output_tokens, call.queue_time_s, call.first_token_time_s);
    line += fmt::format(" chunks={} preemptions={}", call.num_chunks, call.num_preemptions);
  }
  if (!record.api_key.empty()) line += fmt::format(" api_key={}", record.api_key);
  return line + fmt::format(" client={} id={}\n", record.client, record.request_id);
}

}  // namespace

std::string format_record(const RequestRecord& record, std::string_view model, LogFormat format,
                          Time now) {
  return format == LogFormat::kJson ? json_line(json_record(record, model, now))
                                    : text_record(record, now);
}

std::string format_event(std::string_view event, std::string_view text, const Json& fields,
                         LogFormat format, Time now) {
  if (format == LogFormat::kText) return fmt::format("dunlin: {}\n", text);
  Json out = {{"time", time_text(now)}, {"level", "info"}, {"event", event}};
  out.update(fields);
  return json_line(out);
}

bool ServerLog::write(const std::string& line) {
  pollfd file{descriptor_, POLLOUT, 0};
  return line.size() <= kMaxLine && ::poll(&file, 1, 0) == 1 && (file.revents & POLLOUT) != 0 &&
         ::write(descriptor_, line.data(), line.size()) > 0;
}

void ServerLog::request(const RequestRecord& record) {
  if (requests_ == LogRequests::kNone) return;
  if (requests_ == LogRequests::kGenerations && !record.is_generation) return;
  const Time now = std::chrono::system_clock::now();
  if (num_dropped_ > 0) {
    const std::string text = fmt::format(
        "{} lines of the log were dropped, since nobody read them in time", num_dropped_);
    if (write(format_event("dropped_lines", text, Json{{"lines", num_dropped_}}, format_, now)))
      num_dropped_ = 0;
  }
  if (!write(format_record(record, model_, format_, now))) ++num_dropped_;
}

}  // namespace dunlin
