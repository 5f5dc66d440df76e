// The metrics page against the list of vLLM's names, types, labels and buckets, and against the
// text format itself.
#include "server/metrics.h"

#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/metrics_page.h"

namespace dunlin {
namespace {

using Buckets = std::vector<double>;

const Buckets kFirstToken = {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
                             1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
const Buckets kTokenTime = {.01, .025, .05, .075, .1,  .15, .2, .3, .4, .5,
                            .75, 1,    2.5, 5,    7.5, 10,  20, 40, 80};
const Buckets kRequestTime = {.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                              30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
const Buckets kStepTokens = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
const Buckets kChoices = {1, 2, 5, 10, 20};
// Up to the context of the test's engine, 3000.
const Buckets kRequestTokens = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000};

struct Wanted {
  const char* name;
  const char* type;
  std::set<std::string> more_labels;  // beside model_name and engine
  Buckets buckets;
};

// vLLM's, but for those of what is not here: adapters, sleep, images, transfers, speculation.
const Wanted kWanted[] = {
    {"vllm:num_requests_running", "gauge", {}, {}},
    {"vllm:num_requests_waiting", "gauge", {}, {}},
    {"vllm:num_requests_waiting_by_reason", "gauge", {"reason"}, {}},
    {"vllm:kv_cache_usage_perc", "gauge", {}, {}},
    {"vllm:cache_config_info",
     "gauge",
     {"block_size", "num_gpu_blocks", "kv_cache_memory_bytes", "enable_prefix_caching"},
     {}},
    {"vllm:prefix_cache_queries_total", "counter", {}, {}},
    {"vllm:prefix_cache_hits_total", "counter", {}, {}},
    {"vllm:num_preemptions_total", "counter", {}, {}},
    {"vllm:prompt_tokens_total", "counter", {}, {}},
    {"vllm:prompt_tokens_by_source_total", "counter", {"source"}, {}},
    {"vllm:prompt_tokens_cached_total", "counter", {}, {}},
    {"vllm:generation_tokens_total", "counter", {}, {}},
    {"vllm:request_success_total", "counter", {"finished_reason"}, {}},
    {"vllm:time_to_first_token_seconds", "histogram", {}, kFirstToken},
    {"vllm:inter_token_latency_seconds", "histogram", {}, kTokenTime},
    {"vllm:request_time_per_output_token_seconds", "histogram", {}, kTokenTime},
    {"vllm:e2e_request_latency_seconds", "histogram", {}, kRequestTime},
    {"vllm:request_queue_time_seconds", "histogram", {}, kRequestTime},
    {"vllm:request_inference_time_seconds", "histogram", {}, kRequestTime},
    {"vllm:request_prefill_time_seconds", "histogram", {}, kRequestTime},
    {"vllm:request_decode_time_seconds", "histogram", {}, kRequestTime},
    {"vllm:request_prompt_tokens", "histogram", {}, kRequestTokens},
    {"vllm:request_generation_tokens", "histogram", {}, kRequestTokens},
    {"vllm:request_max_num_generation_tokens", "histogram", {}, kRequestTokens},
    {"vllm:request_params_max_tokens", "histogram", {}, kRequestTokens},
    {"vllm:request_prefill_kv_computed_tokens", "histogram", {}, kRequestTokens},
    {"vllm:request_params_n", "histogram", {}, kChoices},
    {"vllm:iteration_tokens_total", "histogram", {}, kStepTokens},
};

EngineStats busy_stats() {
  EngineStats stats;
  stats.num_running = 3;
  stats.num_waiting = 2;
  stats.num_blocks = 100;
  stats.num_free_blocks = 25;
  stats.kv_policies[static_cast<std::size_t>(KvPolicyType::kWindow)] = {2, 41};
  stats.num_prompt_tokens = 70;
  stats.prefix_queries = 100;
  stats.prefix_hits = 30;
  stats.finished_length = 4;
  stats.histograms.time_to_first_token.observe(.02);
  stats.histograms.time_to_first_token.observe(.03);
  stats.histograms.time_to_first_token.observe(9999);
  return stats;
}

MetricsPage render() {
  Metrics metrics("a \"quoted\\ name\"\n");
  metrics.record_start(2, 100);
  metrics.record_finish(64);
  metrics.record_answer("/v1/chat/completions", "POST", 200);
  metrics.record_answer("/v1/chat/completions", "POST", 204);
  metrics.record_answer("none", "GET", 404);
  EngineConfig config;
  config.max_context = 3000;
  ProcessUsage process;
  process.resident_bytes = 123;
  MemoryPlan memory;
  memory.kv = 456;
  return MetricsPage(metrics.render(busy_stats(), config, process, memory));
}

TEST(Metrics, the_page_is_well_formed_text) { EXPECT_EQ(render().problem(), ""); }

TEST(Metrics, has_vllms_names_types_labels_and_buckets) {
  const MetricsPage page = render();
  for (const Wanted& wanted : kWanted) {
    SCOPED_TRACE(wanted.name);
    ASSERT_TRUE(page.has(wanted.name));
    EXPECT_EQ(page.type(wanted.name), wanted.type);
    EXPECT_EQ(page.buckets(wanted.name), wanted.buckets);
    std::set<std::string> labels = {"model_name", "engine"};
    labels.insert(wanted.more_labels.begin(), wanted.more_labels.end());
    EXPECT_EQ(page.label_names(wanted.name), labels);
  }
}

TEST(Metrics, shows_no_name_of_vllms_that_the_list_lacks) {
  std::set<std::string> known;
  for (const Wanted& wanted : kWanted) known.insert(wanted.name);
  for (const std::string& name : render().names())
    if (name.starts_with("vllm:")) {
      EXPECT_TRUE(known.contains(name)) << name;
    }
}

TEST(Metrics, says_what_it_was_told) {
  const MetricsPage page = render();
  EXPECT_EQ(page.value("vllm:num_requests_running"), 3);
  EXPECT_EQ(page.value("vllm:kv_cache_usage_perc"), .75);
  EXPECT_EQ(page.value("vllm:prompt_tokens_total"), 100);
  EXPECT_EQ(page.value("vllm:prompt_tokens_by_source_total", "source", "local_compute"), 70);
  EXPECT_EQ(page.value("vllm:request_success_total", "finished_reason", "length"), 4);
  EXPECT_EQ(page.value("vllm:request_success_total", "finished_reason", "abort"), 0);
  EXPECT_EQ(page.value("vllm:time_to_first_token_seconds_bucket", "le", "0.02"), 1);
  EXPECT_EQ(page.value("vllm:time_to_first_token_seconds_bucket", "le", "2560"), 2);
  EXPECT_EQ(page.value("vllm:time_to_first_token_seconds_bucket", "le", "+Inf"), 3);
  EXPECT_EQ(page.value("vllm:time_to_first_token_seconds_count"), 3);
  EXPECT_EQ(page.value("vllm:request_max_num_generation_tokens_sum"), 64);
  EXPECT_EQ(page.value("http_requests_total", "handler", "/v1/chat/completions"), 2);
  EXPECT_EQ(page.value("http_requests_total", "status", "4xx"), 1);
  EXPECT_EQ(page.value("dunlin:memory_planned_bytes", "part", "kv_cache"), 456);
  EXPECT_EQ(page.value("dunlin:kv_policy_requests_running", "policy", "window"), 2);
  EXPECT_EQ(page.value("dunlin:kv_policy_requests_running", "policy", "full"), 0);
  EXPECT_EQ(page.value("dunlin:kv_policy_held_blocks", "policy", "window"), 41);
  EXPECT_EQ(page.value("process_resident_memory_bytes"), 123);
}

}  // namespace
}  // namespace dunlin
