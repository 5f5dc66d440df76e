#include "model/routing.h"

#include <algorithm>
#include <bitset>
#include <cmath>
#include <limits>

namespace dunlin {
namespace {

using ExpertSet = std::bitset<kMaxExperts>;

void softmax_row(std::int64_t n, float* x) {
  const float max = *std::max_element(x, x + n);
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += x[i] = std::exp(x[i] - max);
  for (std::int64_t i = 0; i < n; ++i) x[i] /= sum;
}

// Of [begin, end) without `taken`; -1: none is left.
int best_of(const float* values, int begin, int end, const ExpertSet& taken) {
  int best = -1;
  for (int i = begin; i < end; ++i) {
    if (taken[static_cast<std::size_t>(i)] || (best >= 0 && std::isnan(values[best]))) continue;
    if (best < 0 || values[i] > values[best] || std::isnan(values[i])) best = i;
  }
  return best;
}

float group_score(const MoeConfig& c, const float* values, int begin, int end) {
  ExpertSet taken;
  const int first = best_of(values, begin, end, taken);
  if (!c.two_score_a_group || end - begin < 2) return values[first];
  taken.set(static_cast<std::size_t>(first));
  return values[first] + values[best_of(values, begin, end, taken)];
}

// The experts of groups that are not among the best.
ExpertSet other_groups(const MoeConfig& c, const float* values) {
  ExpertSet left_out;
  if (c.num_groups <= 1) return left_out;
  const int size = c.num_experts / c.num_groups;
  float scores[kMaxExperts];
  for (int g = 0; g < c.num_groups; ++g)
    scores[g] = group_score(c, values, g * size, (g + 1) * size);
  ExpertSet taken;
  for (int i = 0; i < c.groups_per_token; ++i)
    taken.set(static_cast<std::size_t>(best_of(scores, 0, c.num_groups, taken)));
  for (int e = 0; e < c.num_experts; ++e)
    left_out[static_cast<std::size_t>(e)] = !taken[static_cast<std::size_t>(e / size)];
  return left_out;
}

}  // namespace

void route(const MoeConfig& c, const float* correction_bias, float* logits, std::int32_t* chosen,
           float* weights) {
  if (c.scoring == ExpertScoring::kSoftmax) softmax_row(c.num_experts, logits);
  if (c.scoring == ExpertScoring::kSigmoid)
    for (int e = 0; e < c.num_experts; ++e) logits[e] = 1.0f / (1.0f + std::exp(-logits[e]));
  const float* scores = logits;

  float ranks[kMaxExperts];
  for (int e = 0; e < c.num_experts; ++e)
    ranks[e] = correction_bias != nullptr ? scores[e] + correction_bias[e] : scores[e];
  ExpertSet taken = other_groups(c, ranks);
  for (int i = 0; i < c.experts_per_token; ++i) {
    chosen[i] = best_of(ranks, 0, c.num_experts, taken);
    taken.set(static_cast<std::size_t>(chosen[i]));
  }
  std::sort(chosen, chosen + c.experts_per_token);

  float sum = 0;
  for (int i = 0; i < c.experts_per_token; ++i) sum += weights[i] = scores[chosen[i]];
  if (c.scoring == ExpertScoring::kSoftmaxOfChosen) {
    softmax_row(c.experts_per_token, weights);
    sum = 1;
  }
  // Sigmoids may all be zero.
  const float factor = c.normalize ? c.scale / std::max(sum, 1e-20f) : c.scale;
  for (int i = 0; i < c.experts_per_token; ++i) weights[i] *= factor;
}

}  // namespace dunlin
