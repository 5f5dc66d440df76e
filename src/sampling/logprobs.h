// Log-probabilities of one row of raw logits: those of the model, before bias, penalties and
// temperature.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "dunlin/types.h"
#include "sampling/row_ops.h"

namespace dunlin {

struct TokenLogprobs {
  float logprob = 0;                           // of the token itself, before penalties
  int rank = 0;                                // 0 = the most likely; ties by ascending id
  std::vector<std::pair<TokenId, float>> top;  // the k best, descending
};

// log p(token) = x[token] - log sum_i exp x[i], with the num_top best alternatives. -inf for a
// token whose logit is -inf or NaN. `scratch` is reused between calls.
TokenLogprobs compute_logprobs(std::span<const float> row, TokenId token, int num_top,
                               std::vector<Candidate>& scratch);

}  // namespace dunlin
