// How `dunlin bench` prints: llama-bench's and llama-batched-bench's columns and field names, so
// that their scripts and eyes work here too.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cli/bench_runner.h"
#include "kernels/machine_limits.h"

namespace dunlin::cli {

struct BenchModel {
  std::string path;
  std::string type;             // "llama 30L Q4_1"
  std::int64_t size_bytes = 0;  // of all tensors
  std::int64_t num_params = 0;
  std::string backend;  // "CPU avx2"
};

enum class BenchOutput { kMarkdown, kJson, kCsv };

std::string format_bench(const BenchModel& model, std::span<const BenchResult> results,
                         BenchOutput output);

// `dunlin bench --machine`: a row for each number of threads.
std::string format_machine(const std::string& backend, std::span<const MachineLimits> rows,
                           BenchOutput output);

std::string batched_header();
std::string format_batched(const BatchedResult& result);  // one table row
std::string format_batched_jsonl(int n_threads, const BatchedResult& result);

}  // namespace dunlin::cli
