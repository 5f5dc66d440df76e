// What /metrics shows: Prometheus text under vLLM's names, labels and buckets, so that dashboards
// and alerts made for vLLM work as they are. docs/operations.md lists them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/metrics.h"
#include "cpu/process_usage.h"
#include "engine/engine.h"
#include "engine/memory_plan.h"

namespace dunlin {

// What the server counts itself; the engine counts the rest. Thread-safe.
class Metrics {
 public:
  explicit Metrics(std::string model_name) : model_name_(std::move(model_name)) {}

  // A request was taken in: its n and its max_tokens (0: to the end of the context).
  void record_start(int num_choices, int max_tokens);
  // It came to its end: the output tokens of its longest choice.
  void record_finish(int max_output_tokens);
  // An HTTP request was answered. `path`: of the route, "none" where there is no such route, so
  // that strangers can't make up series; `method`: one of ours or "other".
  void record_answer(std::string_view path, std::string_view method, int status);

  std::string render(const EngineStats& stats, const EngineConfig& config,
                     const ProcessUsage& process, const MemoryPlan& memory) const;

 private:
  static constexpr std::array<double, 5> kChoiceBuckets = {1, 2, 5, 10, 20};

  struct Answer {
    std::string path, method;
    int status_class = 0;  // 2 for 200 to 299
    auto operator<=>(const Answer&) const = default;
  };

  const std::string model_name_;
  mutable std::mutex mutex_;  // guards what follows
  Histogram<5> params_n_{kChoiceBuckets};
  Histogram<19> params_max_tokens_{kRequestTokenBuckets};
  Histogram<19> max_output_tokens_{kRequestTokenBuckets};
  std::map<Answer, std::uint64_t> answers_;
};

}  // namespace dunlin
