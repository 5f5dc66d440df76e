// Sampler: one row of logits -> one token. The whole of the rule, in order:
//   1. log-probabilities are taken from the raw row
//   2. logit_bias, penalties and masks (logits_processors.h)
//   3. temperature below 1e-5: the largest logit, ties to the lowest id; done
//   4. weights w = round(2^30 exp((x - max) / temperature)) (row_ops.h)
//   5. min_p keeps x >= max + temperature * ln(min_p)
//   6. top_k keeps the k best of those
//   7. top_p keeps the fewest best of those whose weights reach ceil(top_p * their sum), one at
//      least
//   8. inverse CDF: with u = uniform_at(seed, choice_idx, position) and S the sum of the kept
//      weights, the first kept token in ascending id whose running sum exceeds floor(u * S)
// "Best" is by logit, ties by ascending id. Steps 5 to 8 are exact, so the token depends on the
// row, the parameters and u alone. A draft token is accepted where it equals this draw, which makes
// speculation exact at every temperature. (top_p: Holtzman et al. 2020; min_p: Nguyen et al. 2024.)
//
// One thread at a time; allocates in its constructor and where an output asks for alternatives.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dunlin/types.h"
#include "sampling/logits_processors.h"
#include "sampling/logprobs.h"
#include "sampling/params.h"
#include "sampling/row_ops.h"
#include "sampling/token_constraint.h"

namespace dunlin {

// What belongs to the sequence whose row it is.
struct SampleInput {
  const SamplingParams* params = nullptr;
  const TokenCounts* counts = nullptr;    // wanted where has_penalties(*params)
  std::span<const TokenId> forbidden;     // end ids under min_tokens
  TokenConstraint* constraint = nullptr;  // null: none
  std::uint64_t position = 0;             // absolute position of the token to draw
};

class Sampler {
 public:
  explicit Sampler(int vocab_size);
  // What one takes.
  static std::int64_t reserved_bytes(int vocab_size);

  // Draws from `row` [vocab_size], which is changed. maxima: of the row (row_maxima), or empty.
  // nullopt: no token may come next (everything masked, or the model gave no number). `logprobs` is
  // filled where params asks for it; may be null.
  std::optional<TokenId> sample(std::span<float> row, std::span<const float> maxima,
                                const SampleInput& input, TokenLogprobs* logprobs);

  // What step 8 draws from, after steps 4 to 7 on `row`: kept tokens with a weight, ascending id.
  // For tests and inspection; allocates.
  std::vector<std::pair<TokenId, Weight>> distribution(std::span<const float> row,
                                                       const SamplingParams& params);

 private:
  // Keeps x > value, and of those with x == value the ids up to `id`.
  struct Cut {
    float value;
    TokenId id;
    bool keeps(float x, TokenId token) const { return x > value || (x == value && token <= id); }
  };
  // The kept set: a short list by ascending id, or a cut through the tokens of live_.
  struct Kept {
    bool is_list = false;
    Cut cut{};
    std::uint64_t total = 0;
    WeightRange rest;  // of the tokens within the cut and outside of live_; besides the total
  };
  // A block whose tokens were weighed.
  struct LiveBlock {
    std::int32_t idx;
    float max;          // logit
    std::uint64_t sum;  // of the weights
  };

  // Whether it changed the row.
  bool process(std::span<float> row, const SampleInput& input);
  std::span<const float> maxima_of(std::span<const float> row);
  // How much is weighed: blocks with a maximum within `depth` temperatures of the row's, given up
  // where they are more than one in `share`. The others have bounds, from their maxima or from
  // their tokens.
  struct Effort {
    float depth;
    std::size_t share;
    bool reads_rest;
  };
  static constexpr Effort kEfforts[] = {
      {9, 32, false}, {12, 8, true}, {kWeightlessDepth, 1, false}};
  // Steps 4 to 7, max = row_max(row). nullopt where the bounds leave the cut in doubt, which the
  // last effort doesn't.
  std::optional<Kept> keep(std::span<const float> row, std::span<const float> maxima, float max,
                           const SamplingParams& params, Effort effort);
  Kept keep_list(float max, const Cut& min_p_cut, const SamplingParams& params);
  // live_ becomes the blocks with a maximum of at least `least`. False: they are more than `limit`.
  bool find_live(std::span<const float> maxima, float least, std::size_t limit);
  // Sets the weights of the tokens in live_; returns their sum.
  std::uint64_t weigh(std::span<const float> row, float max, float temperature);
  std::uint64_t mass_of(std::span<const float> row, const Cut& cut) const;
  // fn(id) for the tokens of a block.
  template <typename F>
  void for_tokens(const LiveBlock& block, F fn) const;
  // fn(id) for the tokens within the cut, ascending.
  template <typename F>
  void for_kept(std::span<const float> row, const Cut& cut, F fn) const;
  // Logits within which the cut is sought, low and high included, and what is above.
  struct Band {
    float low = 0, high = 0;
    std::uint64_t above = 0;  // weight of the tokens above high
  };
  Band estimate_band(std::span<const float> row, std::uint64_t left_out, std::uint64_t least);
  std::uint64_t collect_band(std::span<const float> row, const Cut& cut, std::uint64_t least,
                             Band& band);
  std::optional<Kept> nucleus(std::span<const float> row, const Kept& from, float top_p);
  // nullopt: it depends on how much of the rest there is, and where.
  std::optional<TokenId> walk(std::span<const float> row, const Kept& kept, double u) const;

  int vocab_size_;
  std::vector<float> raw_;       // [vocab_size] the row before processing
  std::vector<float> maxima_;    // of a row that was changed or came without
  std::vector<LiveBlock> live_;  // ascending; for a peaked row a few per cent of all blocks
  std::vector<Weight>
      weights_;  // [vocab_size], set in live blocks; or of candidates_ under is_list
  std::vector<Candidate> candidates_;
  std::vector<std::uint32_t> bitmask_;  // [ceil(vocab_size / 32)]
};

}  // namespace dunlin
