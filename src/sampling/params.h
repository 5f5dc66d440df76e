// How a request wants its tokens drawn. Ranges are checked by validate(); the api and cli layers
// fill the fields, the sampler reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dunlin/status.h"
#include "dunlin/types.h"

namespace dunlin {

inline constexpr int kMaxLogprobs = 128;
inline constexpr std::size_t kMaxStopTokenIds = 256;

struct LogitBias {
  TokenId token;
  float bias;  // [-100, 100], added before everything else
};

struct SamplingParams {
  float temperature = 1.0f;         // below 1e-5: greedy, ties to the lowest id
  int top_k = 0;                    // 0: off
  float top_p = 1.0f;               // (0, 1]
  float min_p = 0.0f;               // [0, 1], share of the best token's probability
  float repetition_penalty = 1.0f;  // > 0, over prompt and output (Keskar et al. 2019, CTRL)
  float presence_penalty = 0.0f;    // [-2, 2], over output (OpenAI)
  float frequency_penalty = 0.0f;   // [-2, 2], over output
  std::vector<LogitBias> logit_bias;
  std::uint64_t seed = 0;        // filled from the system's entropy where the client gives none
  std::uint32_t choice_idx = 0;  // which of `n`; part of the generator's key
  int num_logprobs = -1;         // -1: none; 0: of the chosen token; k: and of the k best
  int max_tokens = 0;            // output tokens; 0 only to score a prompt (echo_logprobs)
  int min_tokens = 0;            // no end of generation before this many
  bool ignore_eos = false;
  std::vector<TokenId> stop_token_ids;  // ends the generation, token not part of the output text
};

// kInvalidArgument naming the field in the client's spelling ("top_p must be in (0, 1], got 3").
Outcome validate(const SamplingParams& params, int vocab_size);

}  // namespace dunlin
