// How a run is printed: vLLM's block and vLLM's JSON field names, so that eyes and scripts know
// them.
#pragma once

#include <span>
#include <string>

#include "loadgen/summary.h"

namespace dunlin::loadgen {

// What was run, for the report.
struct RunFacts {
  std::string url, model;
  std::string workload;     // "random"
  std::string endpoint;     // "completions"
  std::string prompts;      // "token ids" or "text"
  std::string started;      // 2026-01-31T12:00:00Z
  double request_rate = 0;  // infinity: all at once
  int concurrency = 0;      // 0: unlimited
  int num_requests = 0;
  std::uint64_t seed = 0;
  bool interrupted = false;
};

std::string format_block(const RunFacts& facts, const Summary& summary,
                         const SummaryOptions& options);

// `records`: told one by one too, where not empty.
std::string format_json(const RunFacts& facts, const Summary& summary,
                        const SummaryOptions& options, std::span<const RequestRecord> records);

}  // namespace dunlin::loadgen
