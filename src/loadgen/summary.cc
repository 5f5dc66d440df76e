#include "loadgen/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/percentile.h"

namespace dunlin::loadgen {
namespace {

// Tokens that came in each second of the run; pieces of an answer count alike.
double peak_per_second(std::span<const RequestRecord> records, double duration_s) {
  std::vector<double> seconds(static_cast<std::size_t>(duration_s) + 2);
  for (const RequestRecord& record : records) {
    if (!record.is_ok() || record.num_pieces() == 0) continue;
    const double tokens = static_cast<double>(record.output_tokens) / record.num_pieces();
    double at = record.start_s + record.first_piece_s;
    for (std::size_t i = 0;; ++i) {
      const auto second = std::min(static_cast<std::size_t>(std::max(at, 0.0)), seconds.size() - 1);
      seconds[second] += tokens;
      if (i == record.gaps_s.size()) break;
      at += record.gaps_s[i];
    }
  }
  return *std::max_element(seconds.begin(), seconds.end());
}

int peak_concurrency(std::span<const RequestRecord> records) {
  std::vector<std::pair<double, int>> changes;
  for (const RequestRecord& record : records) {
    changes.emplace_back(record.start_s, 1);
    changes.emplace_back(record.start_s + record.end_s, -1);
  }
  std::sort(changes.begin(), changes.end());
  int now = 0, most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, now += change);
  return most;
}

}  // namespace

Distribution distribution(std::vector<double> values, std::span<const double> percentiles) {
  Distribution result;
  result.count = values.size();
  std::sort(values.begin(), values.end());
  for (const double p : percentiles) result.percentiles.push_back(percentile(values, p));
  if (values.empty()) return result;
  result.least = values.front();
  result.most = values.back();
  result.median = percentile(values, 50);
  for (const double value : values) result.mean += value / static_cast<double>(values.size());
  double variance = 0;
  for (const double value : values)
    variance += (value - result.mean) * (value - result.mean) / static_cast<double>(values.size());
  result.stddev = std::sqrt(variance);
  return result;
}

Result<Goodput> parse_goodput(const std::vector<std::string>& limits) {
  Goodput goodput;
  for (const std::string& limit : limits) {
    const std::size_t colon = limit.find(':');
    const std::string name = limit.substr(0, colon);
    double* target = name == "ttft"   ? &goodput.ttft_ms
                     : name == "tpot" ? &goodput.tpot_ms
                     : name == "e2el" ? &goodput.e2el_ms
                     : name == "itl"  ? &goodput.itl_p99_ms
                                      : nullptr;
    const char* begin = colon == limit.npos ? "" : limit.c_str() + colon + 1;
    char* end = nullptr;
    const double value = std::strtod(begin, &end);
    if (target == nullptr || end == begin || *end != '\0' || !(value > 0) || std::isinf(value))
      return invalid(
          fmt::format("--goodput: '{}' is no limit; write ttft:500, tpot:50, itl:100 or "
                      "e2el:10000 (milliseconds)",
                      limit));
    *target = value;
    goodput.is_set = true;
  }
  return goodput;
}

bool is_good(const RequestRecord& record, const Goodput& limits) {
  if (!record.is_ok() || record.first_piece_s < 0) return false;
  std::vector<double> gaps(record.gaps_s.begin(), record.gaps_s.end());
  std::sort(gaps.begin(), gaps.end());
  return record.first_piece_s * 1000 <= limits.ttft_ms &&
         record.time_per_output_token_s() * 1000 <= limits.tpot_ms &&
         record.last_piece_s * 1000 <= limits.e2el_ms &&
         percentile(gaps, 99) * 1000 <= limits.itl_p99_ms;
}

Summary summarize(std::span<const RequestRecord> records, const SummaryOptions& options) {
  Summary summary;
  summary.duration_s = options.duration_s;
  std::vector<double> ttft, tpot, itl, e2el;
  int good = 0;
  for (const RequestRecord& record : records) {
    if (!record.is_ok()) {
      const auto kind = static_cast<std::size_t>(record.failure);
      if (summary.by_failure[kind]++ == 0) summary.example[kind] = record.message;
      const bool is_own =
          record.failure == Failure::kLeft || record.failure == Failure::kInterrupted;
      summary.failed += is_own ? 0 : 1;
      continue;
    }
    ++summary.completed;
    summary.without_usage += record.has_usage ? 0 : 1;
    summary.input_tokens += record.prompt_tokens;
    summary.cached_tokens += record.cached_tokens;
    summary.output_tokens += record.output_tokens;
    good += is_good(record, options.goodput) ? 1 : 0;
    if (record.first_piece_s < 0) continue;
    ttft.push_back(record.first_piece_s * 1000);
    e2el.push_back(record.last_piece_s * 1000);
    if (const double time = record.time_per_output_token_s(); time >= 0)
      tpot.push_back(time * 1000);
    for (const float gap : record.gaps_s) itl.push_back(double{gap} * 1000);
  }
  const double duration = std::max(options.duration_s, 1e-9);
  summary.request_throughput = summary.completed / duration;
  summary.request_goodput = good / duration;
  summary.output_throughput = static_cast<double>(summary.output_tokens) / duration;
  summary.total_throughput =
      static_cast<double>(summary.input_tokens + summary.output_tokens) / duration;
  summary.peak_output_throughput = peak_per_second(records, options.duration_s);
  summary.peak_concurrent = peak_concurrency(records);
  summary.ttft_ms = distribution(std::move(ttft), options.percentiles);
  summary.tpot_ms = distribution(std::move(tpot), options.percentiles);
  summary.itl_ms = distribution(std::move(itl), options.percentiles);
  summary.e2el_ms = distribution(std::move(e2el), options.percentiles);
  return summary;
}

}  // namespace dunlin::loadgen
