#include "loadgen/report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace dunlin::loadgen {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kWidth = 50;

std::string title(const std::string& text, char fill) {
  const int left = (kWidth - static_cast<int>(text.size())) / 2;
  const int right = kWidth - static_cast<int>(text.size()) - left;
  return std::string(static_cast<std::size_t>(left), fill) + text +
         std::string(static_cast<std::size_t>(right), fill) + "\n";
}

template <typename Value>
std::string row(const std::string& label, const Value& value) {
  return fmt::format("{:<40} {:<9}\n", label + ":", value);
}
std::string row(const std::string& label, double value) {
  return row(label, fmt::format("{:.2f}", value));
}

std::string percentile_name(double p) { return fmt::format("p{:g}", p); }

struct Metric {
  const char* name;
  const char* label;
  const char* heading;
  const Distribution Summary::* values;
};
constexpr Metric kMetrics[] = {
    {"ttft", "TTFT", "Time to First Token", &Summary::ttft_ms},
    {"tpot", "TPOT", "Time per Output Token (excl. 1st token)", &Summary::tpot_ms},
    {"itl", "ITL", "Inter-token Latency", &Summary::itl_ms},
    {"e2el", "E2EL", "End-to-end Latency", &Summary::e2el_ms},
};

std::string latency_rows(const Metric& metric, const Summary& summary,
                         const SummaryOptions& options) {
  const Distribution& values = summary.*metric.values;
  std::string out = title(metric.heading, '-');
  out += row(fmt::format("Mean {} (ms)", metric.label), values.mean);
  out += row(fmt::format("Median {} (ms)", metric.label), values.median);
  for (std::size_t i = 0; i < options.percentiles.size(); ++i)
    out += row(fmt::format("P{:g} {} (ms)", options.percentiles[i], metric.label),
               values.percentiles[i]);
  return out;
}

std::string failure_rows(const Summary& summary) {
  std::string out;
  for (int kind = 1; kind < kNumFailures; ++kind) {
    const auto i = static_cast<std::size_t>(kind);
    if (summary.by_failure[i] == 0) continue;
    const std::string& example = summary.example[i];
    out += row(fmt::format("  {}", failure_name(static_cast<Failure>(kind))),
               fmt::format("{}{}", summary.by_failure[i],
                           example.empty() ? "" : fmt::format("   ({})", example)));
  }
  return out;
}

Json record_json(const RequestRecord& record) {
  Json gaps = Json::array();
  for (const float gap : record.gaps_s) gaps.push_back(std::round(gap * 1e6f) / 1e6);
  Json out;
  out["index"] = record.index;
  out["start_s"] = record.start_s;
  out["ttft_s"] = record.first_piece_s < 0 ? Json(nullptr) : Json(record.first_piece_s);
  out["latency_s"] = record.first_piece_s < 0 ? Json(nullptr) : Json(record.last_piece_s);
  out["end_s"] = record.end_s;
  out["itl_s"] = std::move(gaps);
  out["input_tokens"] = record.prompt_tokens;
  out["cached_tokens"] = record.cached_tokens;
  out["output_tokens"] = record.output_tokens;
  out["http_status"] = record.http_status;
  out["failure"] = record.is_ok() ? Json(nullptr) : Json(failure_name(record.failure));
  if (!record.message.empty()) out["message"] = record.message;
  return out;
}

}  // namespace

std::string format_block(const RunFacts& facts, const Summary& summary,
                         const SummaryOptions& options) {
  std::string out = title(" Serving Benchmark Result ", '=');
  out += row("Successful requests", summary.completed);
  out += row("Failed requests", summary.failed);
  out += failure_rows(summary);
  if (facts.concurrency > 0) out += row("Maximum request concurrency", facts.concurrency);
  if (std::isfinite(facts.request_rate))
    out += row("Request rate configured (RPS)", facts.request_rate);
  out += row("Benchmark duration (s)", summary.duration_s);
  out += row("Total input tokens", summary.input_tokens);
  if (summary.cached_tokens > 0) out += row("Cached input tokens", summary.cached_tokens);
  out += row("Total generated tokens", summary.output_tokens);
  out += row("Request throughput (req/s)", summary.request_throughput);
  if (options.goodput.is_set) out += row("Request goodput (req/s)", summary.request_goodput);
  out += row("Output token throughput (tok/s)", summary.output_throughput);
  out += row("Peak output token throughput (tok/s)", summary.peak_output_throughput);
  out += row("Peak concurrent requests", summary.peak_concurrent);
  out += row("Total token throughput (tok/s)", summary.total_throughput);
  for (const Metric& metric : kMetrics) out += latency_rows(metric, summary, options);
  return out + title("", '=');
}

std::string format_json(const RunFacts& facts, const Summary& summary,
                        const SummaryOptions& options, std::span<const RequestRecord> records) {
  Json out;
  out["date"] = facts.started;
  out["base_url"] = facts.url;
  out["model_id"] = facts.model;
  out["dataset_name"] = facts.workload;
  out["endpoint"] = facts.endpoint;
  out["prompt_format"] = facts.prompts;
  out["seed"] = facts.seed;
  out["num_prompts"] = facts.num_requests;
  out["request_rate"] = std::isfinite(facts.request_rate) ? Json(facts.request_rate) : Json("inf");
  out["max_concurrency"] = facts.concurrency > 0 ? Json(facts.concurrency) : Json(nullptr);
  out["interrupted"] = facts.interrupted;
  out["duration"] = summary.duration_s;
  out["completed"] = summary.completed;
  out["failed"] = summary.failed;
  out["failures"] = Json::object();
  for (int kind = 1; kind < kNumFailures; ++kind) {
    const int count = summary.by_failure[static_cast<std::size_t>(kind)];
    if (count > 0) out["failures"][failure_name(static_cast<Failure>(kind))] = count;
  }
  out["without_usage"] = summary.without_usage;
  out["total_input_tokens"] = summary.input_tokens;
  out["total_cached_tokens"] = summary.cached_tokens;
  out["total_output_tokens"] = summary.output_tokens;
  out["request_throughput"] = summary.request_throughput;
  out["request_goodput"] = options.goodput.is_set ? Json(summary.request_goodput) : Json(nullptr);
  out["output_throughput"] = summary.output_throughput;
  out["total_token_throughput"] = summary.total_throughput;
  out["max_output_tokens_per_s"] = summary.peak_output_throughput;
  out["max_concurrent_requests"] = summary.peak_concurrent;
  for (const Metric& metric : kMetrics) {
    const Distribution& values = summary.*metric.values;
    const std::string unit = fmt::format("_{}_ms", metric.name);
    out["mean" + unit] = values.mean;
    out["median" + unit] = values.median;
    out["std" + unit] = values.stddev;
    out["max" + unit] = values.most;
    for (std::size_t i = 0; i < options.percentiles.size(); ++i)
      out[percentile_name(options.percentiles[i]) + unit] = values.percentiles[i];
  }
  if (!records.empty()) {
    out["requests"] = Json::array();
    for (const RequestRecord& record : records) out["requests"].push_back(record_json(record));
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace dunlin::loadgen
