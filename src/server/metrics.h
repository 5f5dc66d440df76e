// What /metrics shows: Prometheus text under vLLM's names, so that dashboards and alerts made for
// vLLM work as they are.
#pragma once

#include <array>
#include <mutex>
#include <string>
#include <utility>

#include "base/metrics.h"
#include "engine/engine.h"

namespace dunlin {

// What the server counts itself; the engine counts the rest. Thread-safe.
class Metrics {
 public:
  explicit Metrics(std::string model_name) : model_name_(std::move(model_name)) {}

  // A request was taken in: its n and its max_tokens (0: to the end of the context).
  void record_start(int num_choices, int max_tokens);

  std::string render(const EngineStats& stats, const EngineConfig& config) const;

 private:
  static constexpr std::array<double, 5> kChoiceBuckets = {1, 2, 5, 10, 20};

  const std::string model_name_;
  mutable std::mutex mutex_;  // guards what follows
  Histogram<5> params_n_{kChoiceBuckets};
  Histogram<19> params_max_tokens_{kRequestTokenBuckets};
};

}  // namespace dunlin
