// Text-level requests and answers, free of any wire format.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/request.h"
#include "sampling/params.h"

namespace dunlin {

struct StopSpec {
  std::vector<std::string> strings;  // at most 16, each 1 to 512 bytes
  bool include_in_output = false;    // the stop string itself is part of the text
};

// One generation's wishes, common to chat and completion.
struct GenerationOptions {
  SamplingParams sampling;  // max_tokens 0: to the end of the context
  StopSpec stop;
  int n = 1;  // choices, each drawn with its own choice_idx
  int priority = 0;
  std::string cache_salt;                      // EngineRequest::cache_salt
  std::optional<KvPolicy> kv_policy;           // EngineRequest::kv_policy
  int tenant = 0;                              // EngineRequest::tenant
  std::chrono::milliseconds queue_timeout{0};  // as EngineRequest has them
  std::chrono::milliseconds deadline{0};
  bool echo_logprobs = false;  // TextDelta::prompt_logprobs in each choice
};

struct TokenLogprobText {
  std::string token;  // as text, bytes that are not UTF-8 as U+FFFD
  std::string bytes;
  TokenId id = 0;
  float logprob = 0;
  int num_chars = 0;  // characters that begin in this token; 0 for control tokens
  struct Alternative {
    std::string token;
    std::string bytes;
    TokenId id = 0;
    float logprob = 0;
  };
  std::vector<Alternative> top;  // the k best, descending
};

// A piece of the answer of one choice.
struct TextDelta {
  int choice_idx = 0;
  std::string text;  // valid UTF-8, may be empty
  // Of the tokens whose text begins in what has been given out: a token wholly behind a stop
  // string, or one that ends the generation, has none.
  std::vector<TokenLogprobText> logprobs;
  std::vector<TokenLogprobText>
      prompt_logprobs;  // under echo_logprobs, once; entry 0 has no number
  // Which token this is of; absent where only the finish is told. One that ends the generation may
  // be told with FinishReason::kStop and has no text.
  std::optional<TokenId> token;
  FinishReason finish = FinishReason::kNone;
  std::optional<std::string> stop_string;  // which one ended it
  std::optional<Status> error;
  TimeLimit ended_by = TimeLimit::kNone;
  RequestStats stats;  // whole with the last delta of the choice
};

}  // namespace dunlin
