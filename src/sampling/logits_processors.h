// What changes a row of logits before a token is drawn, in the order the sampler applies it:
//   1. logit_bias           x += bias
//   2. repetition_penalty   x = x > 0 ? x / r : x * r       tokens of prompt or output
//   3. frequency, presence  x -= frequency * count + presence * [count > 0]   output only
//   4. masks                x = -inf for tokens that may not come next
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dunlin/types.h"
#include "sampling/params.h"

namespace dunlin {

// How often each token of one sequence came up, for the penalties. A hash table over the distinct
// tokens; add() doesn't allocate while they stay within the room asked for.
class TokenCounts {
 public:
  TokenCounts() = default;
  // max_output_tokens: room for so many add() calls.
  TokenCounts(std::span<const TokenId> prompt, int max_output_tokens);

  void add(TokenId token) { ++find_or_add(token).output_count; }

  struct Entry {
    TokenId token = 0;
    std::int32_t output_count = 0;
  };
  std::span<const Entry> entries() const { return entries_; }  // each distinct token once

 private:
  Entry& find_or_add(TokenId token);
  void rehash(std::size_t num_buckets);
  std::size_t bucket_of(TokenId token) const;

  std::vector<Entry> entries_;
  std::vector<std::int32_t> buckets_;  // index into entries_ or -1; power of two, half empty
};

bool has_penalties(const SamplingParams& params);

void apply_logit_bias(std::span<const LogitBias> bias, std::span<float> row);
void apply_penalties(const SamplingParams& params, const TokenCounts& counts, std::span<float> row);
void mask_tokens(std::span<const TokenId> forbidden, std::span<float> row);
// Masks the tokens whose bit is 0; bitmask as in TokenConstraint.
void apply_bitmask(std::span<const std::uint32_t> bitmask, std::span<float> row);

}  // namespace dunlin
