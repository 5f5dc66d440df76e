#include "sampling/params.h"

#include <cmath>

#include <fmt/format.h>

namespace dunlin {
namespace {

// NaN fails every comparison, so the conditions say what is right, not what is wrong.
Outcome check_range(const char* name, float value, float low, float high, const char* range) {
  if (value >= low && value <= high) return {};
  return invalid(fmt::format("{} must be {}, got {}", name, range, value));
}

Outcome check_token(const char* name, TokenId token, int vocab_size) {
  if (token >= 0 && token < vocab_size) return {};
  return invalid(
      fmt::format("{} names token {}, but the vocabulary has {} tokens", name, token, vocab_size));
}

}  // namespace

Outcome validate(const SamplingParams& params, int vocab_size) {
  constexpr float kHuge = 1e30f;
  DUNLIN_TRY(check_range("temperature", params.temperature, 0, kHuge, "in [0, 1e30]"));
  if (params.top_k < 0) {
    return invalid(fmt::format("top_k must be at least 0 (0 is off), got {}", params.top_k));
  }
  if (!(params.top_p > 0 && params.top_p <= 1)) {
    return invalid(fmt::format("top_p must be in (0, 1], got {}", params.top_p));
  }
  DUNLIN_TRY(check_range("min_p", params.min_p, 0, 1, "in [0, 1]"));
  if (!(params.repetition_penalty > 0 && params.repetition_penalty <= kHuge)) {
    return invalid(
        fmt::format("repetition_penalty must be in (0, 1e30], got {}", params.repetition_penalty));
  }
  DUNLIN_TRY(check_range("presence_penalty", params.presence_penalty, -2, 2, "in [-2, 2]"));
  DUNLIN_TRY(check_range("frequency_penalty", params.frequency_penalty, -2, 2, "in [-2, 2]"));
  for (const LogitBias& entry : params.logit_bias) {
    DUNLIN_TRY(check_token("logit_bias", entry.token, vocab_size));
    DUNLIN_TRY(check_range("logit_bias", entry.bias, -100, 100, "in [-100, 100]"));
  }
  if (params.num_logprobs > kMaxLogprobs) {
    return invalid(
        fmt::format("top_logprobs must be at most {}, got {}", kMaxLogprobs, params.num_logprobs));
  }
  if (params.max_tokens < 0) {
    return invalid(fmt::format("max_tokens must be at least 1, got {}", params.max_tokens));
  }
  if (params.min_tokens < 0 || params.min_tokens > params.max_tokens) {
    return invalid(fmt::format("min_tokens must be in [0, max_tokens = {}], got {}",
                               params.max_tokens, params.min_tokens));
  }
  if (params.stop_token_ids.size() > kMaxStopTokenIds) {
    return invalid(fmt::format("stop_token_ids must be at most {} ids, got {}", kMaxStopTokenIds,
                               params.stop_token_ids.size()));
  }
  for (const TokenId token : params.stop_token_ids) {
    DUNLIN_TRY(check_token("stop_token_ids", token, vocab_size));
  }
  return {};
}

}  // namespace dunlin
