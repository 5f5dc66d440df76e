// Text-level requests and answers, free of any wire format.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/request.h"
#include "sampling/params.h"

namespace dunlin {

struct StopSpec {
  std::vector<std::string> strings;     // at most 16, each 1 to 512 bytes
  bool include_in_output = false;
};

// One generation's wishes, common to chat and completion.
struct GenerationOptions {
  SamplingParams sampling;
  StopSpec stop;
  int n = 1;
  int priority = 0;
};

struct TokenLogprobText {
  std::string token;                    // as text, bytes that are not UTF-8 as U+FFFD
  std::string bytes;
  TokenId id = 0;
  float logprob = 0;
  struct Alternative { std::string token; std::string bytes; TokenId id; float logprob; };
  std::vector<Alternative> top;
};

// A piece of the answer of one choice.
struct TextDelta {
  int choice_idx = 0;
  std::string text;                     // valid UTF-8, may be empty
  std::vector<TokenLogprobText> logprobs;
  int num_new_tokens = 0;
  FinishReason finish = FinishReason::kNone;
  std::optional<std::string> stop_string;  // which one ended it
  std::optional<Status> error;
  RequestStats stats;                   // whole with the last delta of the choice
};

}  // namespace dunlin
