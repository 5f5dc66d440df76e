#include "server/metrics.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <prometheus/text_serializer.h>

namespace dunlin {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

// Gathers families. Those of the model all carry the same labels.
class Page {
 public:
  explicit Page(const std::string& model_name)
      : labels_{{"model_name", model_name}, {"engine", "0"}} {}

  void gauge(const char* name, const char* help, double value, const Labels& more = {}) {
    add(name, help, MetricType::Gauge, more).gauge.value = value;
  }
  void counter(const char* name, const char* help, std::uint64_t value, const Labels& more = {}) {
    add(name, help, MetricType::Counter, more).counter.value = static_cast<double>(value);
  }
  // Buckets above `largest` are left out: nothing is there.
  template <std::size_t N>
  void histogram(const char* name, const char* help, const Histogram<N>& histogram,
                 double largest = std::numeric_limits<double>::infinity()) {
    ClientMetric::Histogram& out = add(name, help, MetricType::Histogram, {}).histogram;
    out.sample_count = histogram.count();
    out.sample_sum = histogram.sum();
    std::uint64_t running = 0;
    for (std::size_t i = 0; i < N && histogram.bound(i) <= largest; ++i) {
      running += histogram.bucket_count(i);
      out.bucket.push_back({running, histogram.bound(i)});
    }
    out.bucket.push_back({histogram.count(), std::numeric_limits<double>::infinity()});
  }
  // Of the process or of HTTP, not of a model.
  void plain(const char* name, const char* help, MetricType type, double value,
             const Labels& labels = {}) {
    ClientMetric& metric = add(name, help, type, {});
    metric.label = labels;
    (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  }
  std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  // Metrics of one name that differ in their labels are added one behind the other.
  ClientMetric& add(const char* name, const char* help, MetricType type, const Labels& more) {
    if (families_.empty() || families_.back().name != name) {
      MetricFamily family;
      family.name = name;
      family.help = help;
      family.type = type;
      families_.push_back(std::move(family));
    }
    ClientMetric& metric = families_.back().metric.emplace_back();
    metric.label = labels_;
    metric.label.insert(metric.label.end(), more.begin(), more.end());
    return metric;
  }

  Labels labels_;
  std::vector<MetricFamily> families_;
};

void add_gauges(Page& page, const EngineStats& stats, const EngineConfig& config) {
  const auto used = static_cast<double>(stats.num_blocks - stats.num_free_blocks);
  page.gauge("vllm:num_requests_running", "Sequences in the running batch.", stats.num_running);
  page.gauge("vllm:num_requests_waiting", "Sequences waiting to be scheduled.", stats.num_waiting);
  constexpr const char* kByReason = "vllm:num_requests_waiting_by_reason";
  constexpr const char* kByReasonHelp =
      "Sequences waiting for room in the batch (capacity) or for a condition (deferred).";
  page.gauge(kByReason, kByReasonHelp, stats.num_waiting, {{"reason", "capacity"}});
  page.gauge(kByReason, kByReasonHelp, 0, {{"reason", "deferred"}});
  page.gauge("vllm:kv_cache_usage_perc", "Share of KV blocks held by sequences, 1 is all.",
             stats.num_blocks > 0 ? used / static_cast<double>(stats.num_blocks) : 0);
  const KvWaste& waste = stats.kv_waste;
  const auto lost = static_cast<double>(waste.num_empty + waste.num_expired);
  page.gauge("dunlin:kv_cache_waste_perc",
             "Share of the held KV slots that no query will read: behind the last token of a "
             "sequence, before a window in its first block, and behind sinks in theirs.",
             waste.num_slots > 0 ? lost / static_cast<double>(waste.num_slots) : 0);
  for (std::size_t i = 0; i < stats.kv_policies.size(); ++i) {
    page.gauge("dunlin:kv_policy_requests_running", "Running sequences by KV policy.",
               stats.kv_policies[i].num_running,
               {{"policy", std::string(name_of(static_cast<KvPolicyType>(i)))}});
  }
  for (std::size_t i = 0; i < stats.kv_policies.size(); ++i) {
    page.gauge("dunlin:kv_policy_held_blocks", "KV blocks that sequences hold, by KV policy.",
               static_cast<double>(stats.kv_policies[i].num_held_blocks),
               {{"policy", std::string(name_of(static_cast<KvPolicyType>(i)))}});
  }
  page.gauge("vllm:cache_config_info", "How the KV cache is set up.", 1,
             {{"block_size", "16"},
              {"num_gpu_blocks", std::to_string(stats.num_blocks)},
              {"kv_cache_memory_bytes", std::to_string(config.kv_bytes)},
              {"enable_prefix_caching", config.prefix_cache ? "True" : "False"}});
}

void add_counts(Page& page, const EngineStats& stats) {
  page.counter("vllm:num_preemptions_total", "Sequences put back for want of blocks.",
               stats.num_preemptions);
  page.counter("vllm:prompt_tokens_total", "Prompt tokens, computed or found in the prefix cache.",
               stats.num_prompt_tokens + stats.prefix_hits);
  constexpr const char* kBySource = "vllm:prompt_tokens_by_source_total";
  constexpr const char* kBySourceHelp = "Prompt tokens by where their keys and values come from.";
  page.counter(kBySource, kBySourceHelp, stats.num_prompt_tokens, {{"source", "local_compute"}});
  page.counter(kBySource, kBySourceHelp, stats.prefix_hits, {{"source", "local_cache_hit"}});
  page.counter("vllm:prompt_tokens_cached_total", "Prompt tokens found in the prefix cache.",
               stats.prefix_hits);
  page.counter("vllm:generation_tokens_total", "Tokens generated.", stats.num_generated_tokens);
  page.counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.",
               stats.prefix_queries);
  page.counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.",
               stats.prefix_hits);
  const std::pair<const char*, std::uint64_t> finished[] = {{"stop", stats.finished_stop},
                                                            {"length", stats.finished_length},
                                                            {"abort", stats.finished_cancelled},
                                                            {"error", stats.finished_error}};
  for (const auto& [reason, count] : finished) {
    page.counter("vllm:request_success_total", "Finished requests by reason.", count,
                 {{"finished_reason", reason}});
  }
  page.counter("dunlin:engine_steps_total", "Steps of the engine.", stats.num_steps);
  page.counter("dunlin:model_forwards_total", "Batches computed by the model.",
               stats.model.num_forwards);
  page.counter("dunlin:weight_bytes_read_total", "Bytes of weights read by linear layers.",
               stats.model.weight_bytes_read);
}

void add_disk(Page& page, const DiskTierStats& disk) {
  page.counter("dunlin:prefix_disk_blocks_read_total", "Cached blocks read from disk.",
               disk.num_read);
  page.counter("dunlin:prefix_disk_blocks_written_total", "Cached blocks written to disk.",
               disk.num_written);
  page.counter("dunlin:prefix_disk_blocks_dropped_total",
               "Cached blocks not written: the disk was too slow, or full.", disk.num_dropped);
  page.counter("dunlin:prefix_disk_blocks_evicted_total", "Cached blocks removed for want of room.",
               disk.num_evicted);
  page.counter("dunlin:prefix_disk_blocks_bad_total", "Files of the cache that were not right.",
               disk.num_bad);
  page.gauge("dunlin:prefix_disk_bytes", "Size of the prefix cache on disk.",
             static_cast<double>(disk.num_bytes));
}

void add_times(Page& page, const EngineHistograms& histograms) {
  page.histogram("vllm:time_to_first_token_seconds", "From arrival to the first token.",
                 histograms.time_to_first_token);
  page.histogram("vllm:inter_token_latency_seconds", "Between tokens of one request.",
                 histograms.inter_token);
  page.histogram("vllm:request_time_per_output_token_seconds",
                 "Mean time per output token after the first, of one request.",
                 histograms.time_per_output_token);
  page.histogram("vllm:e2e_request_latency_seconds", "From arrival to the last token.",
                 histograms.e2e);
  page.histogram("vllm:request_queue_time_seconds", "Waiting to be scheduled.", histograms.queue);
  page.histogram("vllm:request_inference_time_seconds", "From first scheduled to the last token.",
                 histograms.inference);
  page.histogram("vllm:request_prefill_time_seconds", "From first scheduled to the first token.",
                 histograms.prefill);
  page.histogram("vllm:request_decode_time_seconds", "From the first token to the last.",
                 histograms.decode);
}

void add_sizes(Page& page, const EngineHistograms& histograms, double context) {
  page.histogram("vllm:request_prompt_tokens", "Prompt tokens of a request.",
                 histograms.prompt_tokens, context);
  page.histogram("vllm:request_generation_tokens", "Output tokens of a request.",
                 histograms.generated_tokens, context);
  page.histogram("vllm:request_prefill_kv_computed_tokens",
                 "Prompt tokens of a request that the prefix cache did not have.",
                 histograms.computed_prompt_tokens, context);
  page.histogram("vllm:iteration_tokens_total", "Tokens computed in a step.",
                 histograms.step_tokens);
}

void add_memory(Page& page, const MemoryPlan& memory) {
  const std::pair<const char*, std::int64_t> parts[] = {{"weights", memory.weights},
                                                        {"kv_cache", memory.kv},
                                                        {"scratch", memory.scratch},
                                                        {"overhead", memory.overhead}};
  for (const auto& [part, bytes] : parts) {
    page.gauge("dunlin:memory_planned_bytes", "What the server planned to take of memory.",
               static_cast<double>(bytes), {{"part", part}});
  }
}

void add_process(Page& page, const ProcessUsage& process) {
  const auto bytes = [](std::int64_t value) { return static_cast<double>(value); };
  page.plain("process_resident_memory_bytes", "Memory of the process that is in use.",
             MetricType::Gauge, bytes(process.resident_bytes));
  page.plain("process_virtual_memory_bytes", "Memory of the process that is reserved.",
             MetricType::Gauge, bytes(process.virtual_bytes));
  page.plain("process_cpu_seconds_total", "CPU time of all threads.", MetricType::Counter,
             process.cpu_seconds);
  page.plain("process_start_time_seconds", "When the process began, in Unix time.",
             MetricType::Gauge, process.start_unix_s);
  page.plain("process_open_fds", "Open file descriptors.", MetricType::Gauge,
             bytes(process.open_files));
  page.plain("process_max_fds", "How many file descriptors may be open.", MetricType::Gauge,
             bytes(process.max_files));
}

}  // namespace

void Metrics::record_start(int num_choices, int max_tokens) {
  const std::lock_guard lock(mutex_);
  params_n_.observe(num_choices);
  if (max_tokens > 0) params_max_tokens_.observe(max_tokens);
}

void Metrics::record_finish(int max_output_tokens) {
  const std::lock_guard lock(mutex_);
  max_output_tokens_.observe(max_output_tokens);
}

void Metrics::record_answer(std::string_view path, std::string_view method, int status) {
  const std::lock_guard lock(mutex_);
  ++answers_[{std::string(path), std::string(method), status / 100}];
}

std::string Metrics::render(const EngineStats& stats, const EngineConfig& config,
                            const ProcessUsage& process, const MemoryPlan& memory) const {
  Page page(model_name_);
  const double context = config.max_context;
  add_gauges(page, stats, config);
  add_counts(page, stats);
  if (!config.prefix_disk.dir.empty()) add_disk(page, stats.prefix_disk);
  add_times(page, stats.histograms);
  add_sizes(page, stats.histograms, context);
  add_memory(page, memory);
  add_process(page, process);
  const std::lock_guard lock(mutex_);
  page.histogram("vllm:request_params_n", "Choices asked for in a request.", params_n_);
  page.histogram("vllm:request_params_max_tokens", "max_tokens asked for in a request.",
                 params_max_tokens_, context);
  page.histogram("vllm:request_max_num_generation_tokens",
                 "Output tokens of a request's longest choice.", max_output_tokens_, context);
  for (const auto& [answer, count] : answers_) {
    page.plain("http_requests_total", "Answered HTTP requests.", MetricType::Counter,
               static_cast<double>(count),
               {{"handler", answer.path},
                {"method", answer.method},
                {"status", std::to_string(answer.status_class) + "xx"}});
  }
  return page.text();
}

}  // namespace dunlin
