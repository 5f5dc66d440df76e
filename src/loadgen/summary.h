// The figures of a run, with vLLM's meanings.
#pragma once

#include <array>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "dunlin/status.h"
#include "loadgen/request_record.h"

namespace dunlin::loadgen {

struct Distribution {
  std::size_t count = 0;
  double mean = 0, stddev = 0, median = 0, least = 0, most = 0;
  std::vector<double> percentiles;  // in the order of the SummaryOptions
};
Distribution distribution(std::vector<double> values, std::span<const double> percentiles);

// Limits in milliseconds that a good request keeps.
struct Goodput {
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  double ttft_ms = kNone, tpot_ms = kNone, e2el_ms = kNone, itl_p99_ms = kNone;
  bool is_set = false;
};
// "ttft:500", "tpot:50", "e2el:10000", "itl:100" (a request's own p99).
Result<Goodput> parse_goodput(const std::vector<std::string>& limits);
bool is_good(const RequestRecord& record, const Goodput& limits);

struct SummaryOptions {
  std::vector<double> percentiles{99};
  Goodput goodput;
  double duration_s = 0;
};

struct Summary {
  double duration_s = 0;
  int completed = 0;
  int failed = 0;  // clients that left and what Ctrl-C cut short are not counted here
  std::array<int, kNumFailures> by_failure{};
  std::array<std::string, kNumFailures> example;                     // the message of one of each
  long long input_tokens = 0, cached_tokens = 0, output_tokens = 0;  // of completed requests
  int without_usage = 0;  // completed, but the server did not count their tokens
  double request_throughput = 0, request_goodput = 0, output_throughput = 0, total_throughput = 0;
  double peak_output_throughput = 0;  // of one second
  int peak_concurrent = 0;
  Distribution ttft_ms, tpot_ms, itl_ms, e2el_ms;  // completed requests
};

// Rates are over duration_s, the time from the first request sent to the last end. TTFT: from
// sending to the first piece; TPOT: the rest of the answer's time over its tokens less one; ITL:
// between pieces, of all requests; E2EL: to the last piece.
Summary summarize(std::span<const RequestRecord> records, const SummaryOptions& options);

}  // namespace dunlin::loadgen
