// Loops over one row of logits [vocab_size]. Safe for NaN (taken as -inf) and for infinities. The
// results depend on the values alone, not on the machine: element-wise arithmetic in a stated
// order, sums of weights in integers.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/row_maxima.h"
#include "dunlin/types.h"

namespace dunlin {

// A token's probability is its weight over the sum of weights. Weights are fixed-point:
// round(exp((x - max) / temperature) * 2^30), so sums are exact, whatever their order, and stay
// under 2^53 for vocabularies of up to 2^23 tokens.
using Weight = std::uint32_t;
inline constexpr Weight kOneWeight = 1u << 30;

struct Candidate {
  float value = 0;
  TokenId id = 0;
};

// The order of all rankings: higher logits first, equal ones by ascending id.
inline bool ranks_before(const Candidate& a, const Candidate& b) {
  return a.value > b.value || (a.value == b.value && a.id < b.id);
}

// The largest logit; -inf where there is none above it.
float row_max(std::span<const float> row);

// maxima [maxima_size(vocab_size)] of the row (base/row_maxima.h).
void row_maxima(std::span<const float> row, std::span<float> maxima);

// The lowest id of the largest logit; -1 where no logit is above -inf.
TokenId row_argmax(std::span<const float> row, std::span<const float> maxima);
TokenId row_argmax(std::span<const float> row);

// Weights under max = row_max(row) > -inf. A maximum of +inf gives its tokens all the weight.
// Returns the sum. `weights` is [vocab_size].
std::uint64_t row_weights(std::span<const float> row, float max, float temperature,
                          std::span<Weight> weights);

// The same for one block of kMaximaBlock logits, max finite.
std::uint64_t block_weights(const float* block, float max, float temperature, Weight* weights);

// Tokens farther than this many temperatures below the maximum weigh nothing: 2^30 exp(-22) is 0.3.
inline constexpr float kWeightlessDepth = 22;

// Bounds of the sum of the weights of all tokens in blocks with a maximum below `least`; max
// finite.
struct WeightRange {
  std::uint64_t least = 0, most = 0;
};
// From the maxima alone: none, or for each block the weight of its best token times the size.
WeightRange weight_range_below(std::span<const float> maxima, float max, float temperature,
                               float least);
// From the row: within 7% of each other, for a fifth of what the weights cost.
WeightRange weight_range_below(std::span<const float> row, std::span<const float> maxima, float max,
                               float temperature, float least);

// sum_i exp(row[i] - max), in double.
double row_sum_exp(std::span<const float> row, float max);

// Tokens that rank before (value, id).
int row_rank(std::span<const float> row, float value, TokenId id);

// The k best candidates above -inf (fewer where there are fewer), in no particular order. No full
// sort: one pass over the blocks that keeps at most 2k and a rising threshold. `out` needs a
// capacity of 2k + 64 not to allocate.
void select_top(std::span<const float> row, std::span<const float> maxima, int k,
                std::vector<Candidate>& out);
void select_top(std::span<const float> row, int k, std::vector<Candidate>& out);

}  // namespace dunlin
