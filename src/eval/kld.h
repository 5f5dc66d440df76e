// How far a model's next-token distributions are from those of another setting of it: the
// Kullback-Leibler divergence KL(base || measured) = sum_i p_i (log p_i - log q_i), in nats, at
// each scored position of a text (Kullback and Leibler, "On Information and Sufficiency", 1951). 0
// where both are alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "dunlin/status.h"
#include "eval/estimate.h"
#include "eval/perplexity.h"

namespace dunlin::eval {

// KL(softmax(base) || softmax(measured)) of two rows of logits of one size.
double kl_divergence(std::span<const float> base, std::span<const float> measured);

struct Divergence {
  int num_chunks = 0;
  std::int64_t num_positions = 0;
  Estimate kld;
  double median = 0, percentile_99 = 0, percentile_99_9 = 0, maximum = 0;
  Estimate same_top;        // share of positions with the same likeliest token
  Estimate base_nll, nll;   // mean of -log p of the text's tokens, each side
  Estimate nll_difference;  // mean of (measured - base), token by token: ln of the ratio of
                            // the perplexities
};

// The figures of a text, position by position.
class DivergenceSums {
 public:
  // The two rows before `next`, the text's token.
  void add(std::span<const float> base, std::span<const float> measured, TokenId next);
  Divergence result() const;

 private:
  std::vector<double> klds_;
  MeanSum kld_, same_top_, base_nll_, nll_, nll_difference_;
};

// Runs each chunk through both engines, which know the same vocabulary, in turn. At most
// kMaxKeptLogitsBytes of the base's logits are kept at a time: a chunk that has more is computed in
// parts, for which engines with a prefix cache go on where the last part ended.
inline constexpr std::int64_t kMaxKeptLogitsBytes = std::int64_t{256} << 20;
Result<Divergence> measure_divergence(Engine& base, Engine& measured, const Chunks& chunks,
                                      const Progress& progress,
                                      std::int64_t max_kept_bytes = kMaxKeptLogitsBytes);

}  // namespace dunlin::eval
