// What `dunlin plan` says, as numbers; and as text and JSON.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/memory_plan.h"
#include "model/weight_sizes.h"

namespace dunlin::cli {

// A format that the weights could have, at the asked context and batch.
struct PlannedFormat {
  std::string name;
  double bits = 0;  // a weight, on the average
  MemoryPlan memory;
  std::int64_t sequences = 0;  // of the asked context that fit in the budget
  bool fits = false;
  double seconds_per_token = 0;  // one sequence with the asked context
};

struct PlanReport {
  std::string model, architecture;
  int num_layers = 0;
  std::int64_t num_params = 0;
  std::string weights;  // the format's name, "as stored", or a type
  double bits = 0;
  std::string cache_type_k, cache_type_v;
  KvPolicy kv_policy;
  std::int64_t kv_bytes_per_token = 0;
  int context = 0, batch = 0, max_batch_tokens = 0;
  int model_context = 0;
  MemoryPlan memory;        // of `batch` sequences of `context` tokens
  std::int64_t budget = 0;  // bytes
  bool budget_is_measured = false;

  std::vector<int> contexts;  // of the grid
  std::vector<int> batches;
  std::vector<std::vector<std::int64_t>> grid;  // [contexts, batches] bytes in all
  std::vector<std::int64_t> sequences;          // [contexts] that fit in the budget at once

  double bytes_per_s = 0;
  bool bandwidth_is_measured = false;
  double seconds_empty = 0, seconds_full = 0;              // a step of one sequence: a token
  double batch_seconds_empty = 0, batch_seconds_full = 0;  // of `batch`: a token each

  std::vector<PlannedFormat> formats;
  std::string recommended;  // "" where nothing fits
};

void print_plan(const PlanReport& report);
void print_plan_json(const PlanReport& report);

// What a server says of its memory, in two lines without "dunlin:" in front.
std::array<std::string, 2> memory_lines(const MemoryTable& table);
nlohmann::ordered_json memory_json(const MemoryTable& table);

}  // namespace dunlin::cli
