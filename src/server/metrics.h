// What /metrics shows: Prometheus text under vLLM's names, so that dashboards and alerts made for
// vLLM work as they are. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "api/api_call.h"
#include "engine/engine.h"

namespace dunlin {

class Metrics {
 public:
  explicit Metrics(const std::string& model_name);
  ~Metrics();

  // A request was taken in: its n and its max_tokens (0: to the end of the context).
  void record_start(int num_choices, int max_tokens);
  void record_finish(const ChoiceReport& report);
  // `num_tokens` came at once, `seconds` after those before them.
  void record_gap(double seconds, int num_tokens);

  std::string render(const EngineStats& stats, const EngineConfig& config) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dunlin
