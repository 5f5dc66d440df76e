// The flags by which the benchmarks of serving say what is asked for.
#pragma once

#include <string>

#include "dunlin/status.h"
#include "loadgen/workload.h"

namespace CLI {
class App;
}

namespace dunlin::cli {

struct LoadFlags {
  std::string workload = "random";
  std::string input_len = "512";
  std::string output_len;  // "": 128, or what the dataset says
  loadgen::WorkloadSpec spec;
};

// Adds --workload --dataset --num-requests --input-len --output-len --prefix-len --num-prefixes and
// --seed, with vLLM's names beside ours.
void add_load_flags(CLI::App& command, LoadFlags& flags);

// What the flags say. kInvalidArgument names the flag that is wrong.
Result<loadgen::WorkloadSpec> workload_spec(const LoadFlags& flags);

// "512" or "32:1024".
Result<loadgen::LengthRange> parse_length_range(const std::string& text);

}  // namespace dunlin::cli
