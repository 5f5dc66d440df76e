// Sends a workload to a server and records what came back. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "dunlin/status.h"
#include "loadgen/request_body.h"
#include "loadgen/request_record.h"
#include "loadgen/workload.h"
#include "net/http_streams.h"

namespace dunlin::loadgen {

struct LoadOptions {
  std::string url;  // of the endpoint
  std::string api_key;
  BodyOptions body;
  int concurrency = 0;  // requests under way at most; 0: as they arrive
  std::chrono::milliseconds connect_timeout{20'000};
  std::chrono::milliseconds timeout{600'000};  // of a whole request
};

struct LoadProgress {
  std::size_t total = 0, finished = 0, failed = 0, running = 0;
};

struct LoadWatch {
  std::function<void(const LoadProgress&)> on_progress;  // some times a second; may be empty
  std::function<bool()> should_stop;                     // looked at as often; may be empty
  int wake_fd = -1;                                      // readable where should_stop has changed
};

struct LoadRun {
  std::vector<RequestRecord> records;  // of requests that were sent, in their order
  double duration_s = 0;               // from the first sent to the last end
  bool interrupted = false;
};

// Each request is sent when it has arrived and fewer than `concurrency` are under way.
LoadRun run_load(HttpStreams& streams, const std::vector<LoadRequest>& workload,
                 const LoadOptions& options, const LoadWatch& watch);

// One request and its whole answer: the status and the body's first MiB. kUnavailable where there
// is no answer, with the reason.
struct HttpAnswer {
  int status = 0;
  std::string body;
};
Result<HttpAnswer> ask(HttpStreams& streams, HttpRequest request);

}  // namespace dunlin::loadgen
