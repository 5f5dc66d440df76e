#include "sampling/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dunlin {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// log p of a logit x. Where the maximum is +inf, the tokens that reach it share everything.
float logprob_of(float x, float max, double log_sum) {
  if (!(x > -kInf)) return -kInf;
  if (max == kInf) return x == kInf ? static_cast<float>(-log_sum) : -kInf;
  return static_cast<float>((static_cast<double>(x) - max) - log_sum);
}

}  // namespace

TokenLogprobs compute_logprobs(std::span<const float> row, TokenId token, int num_top,
                               std::vector<Candidate>& scratch) {
  TokenLogprobs result;
  const float max = row_max(row);
  const double sum = max == kInf ? static_cast<double>(std::count(row.begin(), row.end(), kInf))
                                 : row_sum_exp(row, max);
  const double log_sum = std::log(sum);
  const float x = row[static_cast<std::size_t>(token)];
  result.logprob = logprob_of(x, max, log_sum);
  result.rank = row_rank(row, x > -kInf ? x : -kInf, token);
  if (num_top <= 0) return result;
  select_top(row, num_top, scratch);
  std::sort(scratch.begin(), scratch.end(), ranks_before);
  result.top.reserve(scratch.size());
  for (const Candidate& c : scratch) {
    result.top.emplace_back(c.id, logprob_of(c.value, max, log_sum));
  }
  return result;
}

}  // namespace dunlin
