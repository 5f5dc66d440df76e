// Workloads from files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dunlin/status.h"
#include "loadgen/workload.h"

namespace dunlin::loadgen {

// ShareGPT's JSON: an array of {"conversations": [{"from", "value"}, ...]}. The first turn of each
// is a prompt, the length of the second its max_tokens. `count` of them, drawn without return
// (again from the start where the file has fewer). Tokens are reckoned as four bytes each; as
// usual, prompts or answers below 4 tokens, prompts beyond 1024 and sums beyond 2048 are left out.
// kInvalidArgument: no such array, or nothing usable in it.
Result<std::vector<LoadRequest>> read_sharegpt(const std::string& path, int count,
                                               std::uint64_t seed);

// JSON lines, at most `count`, ordered by arrival:
//   arrival_s   seconds since the start (or "timestamp", in milliseconds, as Mooncake's traces)
//   prompt      text or token ids; or "messages", as of a chat; or
//   prompt_len  (or "input_length") tokens of a prompt that is made up
//   max_tokens  (or "output_length")
// kInvalidArgument names the line.
Result<std::vector<LoadRequest>> read_trace(const std::string& path, int count);

}  // namespace dunlin::loadgen
