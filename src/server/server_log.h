// What the server writes on stderr while it runs: a line a request, when it ends, and a line where
// something happens to the server itself. As text for people or as JSON, an object a line.
//
// Never in it: prompts, answers, keys. Whatever a client has chosen is escaped.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "api/call_stats.h"

namespace dunlin {

enum class LogFormat { kText, kJson };
enum class LogRequests { kNone, kGenerations, kAll };

struct RequestRecord {
  std::string request_id;
  std::string client;  // its address, without the port; "" where it is gone before that was asked
  std::string_view method = "other";  // method_label()
  std::string_view path = "none";     // path_label()
  int status = 0;                     // 499: the client was gone before an answer
  double total_s = 0;                 // from the request's first byte to the answer's last
  std::string api_key;  // its name, where the server has keys and this was a right one
  // Of requests that generate and were taken in:
  std::optional<CallStats> call;
  bool is_streaming = false;
  bool is_generation = false;  // asks the model, whether taken in or not
};

// One line, with its end.
std::string format_record(const RequestRecord& record, std::string_view model, LogFormat format,
                          std::chrono::system_clock::time_point now);
// `fields` go into the JSON object only; `text` is all of the other form.
std::string format_event(std::string_view event, std::string_view text,
                         const nlohmann::ordered_json& fields, LogFormat format,
                         std::chrono::system_clock::time_point now);

// Writes lines to a descriptor and never waits for whoever reads there: where a pipe is full, lines
// are dropped, and how many is told before the next one that fits. Lines are at most 4 KiB. One
// thread.
class ServerLog {
 public:
  ServerLog(LogFormat format, LogRequests requests, std::string model, int descriptor)
      : format_(format), requests_(requests), model_(std::move(model)), descriptor_(descriptor) {}

  void request(const RequestRecord& record);

 private:
  bool write(const std::string& line);

  const LogFormat format_;
  const LogRequests requests_;
  const std::string model_;
  const int descriptor_;
  std::int64_t num_dropped_ = 0;
};

}  // namespace dunlin
