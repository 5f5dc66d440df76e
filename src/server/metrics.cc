#include "server/metrics.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace dunlin {
namespace {

using prometheus::ClientMetric;
using PromHistogram = prometheus::Histogram;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

// vLLM's bucket borders.
const PromHistogram::BucketBoundaries& first_token_buckets() {
  static const PromHistogram::BucketBoundaries kBuckets = {
      .001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
      1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
  return kBuckets;
}
const PromHistogram::BucketBoundaries& token_gap_buckets() {
  static const PromHistogram::BucketBoundaries kBuckets = {.01, .025, .05, .075, .1, .15, .2,
                                                       .3,  .4,   .5,  .75,  1,  2.5, 5,
                                                       7.5, 10,   20,  40,   80};
  return kBuckets;
}
const PromHistogram::BucketBoundaries& request_time_buckets() {
  static const PromHistogram::BucketBoundaries kBuckets = {.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,  15,  20,
                                                       30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
  return kBuckets;
}
const PromHistogram::BucketBoundaries& token_count_buckets() {
  static const PromHistogram::BucketBoundaries kBuckets = {
      1,   2,   5,    10,   20,   50,    100,   200,    500,   1000,
      2000, 5000, 10000, 20000, 50000, 100000, 200000};
  return kBuckets;
}
const PromHistogram::BucketBoundaries& choice_buckets() {
  static const PromHistogram::BucketBoundaries kBuckets = {1, 2, 5, 10, 20};
  return kBuckets;
}

MetricFamily family(std::string name, std::string help, MetricType type) {
  MetricFamily out;
  out.name = std::move(name);
  out.help = std::move(help);
  out.type = type;
  return out;
}

void add_value(MetricFamily& out, Labels labels, double value) {
  ClientMetric metric;
  metric.label = std::move(labels);
  if (out.type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  out.metric.push_back(std::move(metric));
}

}  // namespace

struct Metrics::Impl {
  explicit Impl(std::string name) : model_name(std::move(name)) {}

  PromHistogram& histogram(const std::string& name, const std::string& help,
                       const PromHistogram::BucketBoundaries& buckets) {
    return prometheus::BuildHistogram()
        .Name(name)
        .Help(help)
        .Register(registry)
        .Add({{"model_name", model_name}, {"engine", "0"}}, buckets);
  }

  // In the order in which the library prints those of histograms.
  Labels labels() const { return {{"engine", "0"}, {"model_name", model_name}}; }

  std::string model_name;
  prometheus::Registry registry;
  PromHistogram& first_token =
      histogram("vllm:time_to_first_token_seconds", "From arrival to the first token.",
                first_token_buckets());
  PromHistogram& token_gap = histogram("vllm:inter_token_latency_seconds",
                                   "Between tokens of one request.", token_gap_buckets());
  PromHistogram& per_token =
      histogram("vllm:request_time_per_output_token_seconds",
                "Mean time per output token after the first, of one request.", token_gap_buckets());
  PromHistogram& whole = histogram("vllm:e2e_request_latency_seconds", "From arrival to the last token.",
                               request_time_buckets());
  PromHistogram& queued = histogram("vllm:request_queue_time_seconds", "Waiting to be scheduled.",
                                request_time_buckets());
  PromHistogram& inference = histogram("vllm:request_inference_time_seconds",
                                   "From first scheduled to the last token.",
                                   request_time_buckets());
  PromHistogram& prefill = histogram("vllm:request_prefill_time_seconds",
                                 "From first scheduled to the first token.",
                                 request_time_buckets());
  PromHistogram& decode = histogram("vllm:request_decode_time_seconds",
                                "From the first token to the last.", request_time_buckets());
  PromHistogram& prompt_tokens =
      histogram("vllm:request_prompt_tokens", "Prompt tokens of a request.", token_count_buckets());
  PromHistogram& output_tokens = histogram("vllm:request_generation_tokens",
                                       "Output tokens of a request.", token_count_buckets());
  PromHistogram& params_n =
      histogram("vllm:request_params_n", "Choices asked for in a request.", choice_buckets());
  PromHistogram& params_max_tokens = histogram("vllm:request_params_max_tokens",
                                           "max_tokens asked for in a request.",
                                           token_count_buckets());
};

Metrics::Metrics(const std::string& model_name) : impl_(std::make_unique<Impl>(model_name)) {}
Metrics::~Metrics() = default;

void Metrics::record_start(int num_choices, int max_tokens) {
  impl_->params_n.Observe(num_choices);
  if (max_tokens > 0) impl_->params_max_tokens.Observe(max_tokens);
}

void Metrics::record_finish(const ChoiceReport& report) {
  if (report.finish != FinishReason::kStop && report.finish != FinishReason::kLength) return;
  const RequestStats& stats = report.stats;
  const double decode_s = std::max(0.0, stats.total_time_s - stats.first_token_time_s);
  impl_->first_token.Observe(stats.first_token_time_s);
  impl_->whole.Observe(stats.total_time_s);
  impl_->queued.Observe(stats.queue_time_s);
  impl_->inference.Observe(std::max(0.0, stats.total_time_s - stats.queue_time_s));
  impl_->prefill.Observe(std::max(0.0, stats.first_token_time_s - stats.queue_time_s));
  impl_->decode.Observe(decode_s);
  if (stats.num_output_tokens > 1) impl_->per_token.Observe(decode_s / (stats.num_output_tokens - 1));
  impl_->prompt_tokens.Observe(stats.num_prompt_tokens);
  impl_->output_tokens.Observe(stats.num_output_tokens);
}

void Metrics::record_gap(double seconds, int num_tokens) {
  for (int i = 0; i < num_tokens; ++i) impl_->token_gap.Observe(seconds / num_tokens);
}

std::string Metrics::render(const EngineStats& stats, const EngineConfig& config) const {
  std::vector<MetricFamily> families;
  const auto add = [&](const char* name, const char* help, MetricType type, double value) {
    families.push_back(family(name, help, type));
    add_value(families.back(), impl_->labels(), value);
  };
  const auto gauge = [&](const char* name, const char* help, double value) {
    add(name, help, MetricType::Gauge, value);
  };
  const auto counter = [&](const char* name, const char* help, std::uint64_t value) {
    add(name, help, MetricType::Counter, static_cast<double>(value));
  };
  const auto used = static_cast<double>(stats.num_blocks - stats.num_free_blocks);
  gauge("vllm:num_requests_running", "Sequences in the running batch.", stats.num_running);
  gauge("vllm:num_requests_waiting", "Sequences waiting to be scheduled.", stats.num_waiting);
  gauge("vllm:kv_cache_usage_perc", "Share of KV blocks in use, 1 is all.",
        stats.num_blocks > 0 ? used / static_cast<double>(stats.num_blocks) : 0);
  counter("vllm:num_preemptions_total", "Sequences put back for want of blocks.",
          stats.num_preemptions);
  counter("vllm:prompt_tokens_total", "Prompt tokens computed.", stats.num_prompt_tokens);
  counter("vllm:prompt_tokens_cached_total", "Prompt tokens found in the prefix cache.",
          stats.prefix_hits);
  counter("vllm:generation_tokens_total", "Tokens generated.", stats.num_generated_tokens);
  counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.",
          stats.prefix_queries);
  counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.",
          stats.prefix_hits);
  counter("dunlin:engine_steps_total", "Steps of the engine.", stats.num_steps);

  families.push_back(family("vllm:request_success_total", "Finished requests by reason.",
                            MetricType::Counter));
  const std::pair<const char*, std::uint64_t> finished[] = {{"stop", stats.finished_stop},
                                                            {"length", stats.finished_length},
                                                            {"abort", stats.finished_cancelled},
                                                            {"error", stats.finished_error}};
  for (const auto& [reason, value] : finished) {
    Labels labels = impl_->labels();
    labels.push_back({"finished_reason", reason});
    add_value(families.back(), std::move(labels), static_cast<double>(value));
  }

  families.push_back(family("vllm:cache_config_info", "How the KV cache is set up.",
                            MetricType::Gauge));
  Labels labels = impl_->labels();
  labels.push_back({"block_size", "16"});
  labels.push_back({"num_gpu_blocks", std::to_string(stats.num_blocks)});
  labels.push_back({"kv_cache_memory_bytes", std::to_string(config.kv_bytes)});
  labels.push_back({"enable_prefix_caching", config.prefix_cache ? "True" : "False"});
  add_value(families.back(), std::move(labels), 1);

  const std::vector<MetricFamily> histograms = impl_->registry.Collect();
  families.insert(families.end(), histograms.begin(), histograms.end());
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace dunlin
