// RowSampler: draws the next token of every sequence of a step, on the model's threads. A draw
// depends on its row alone, so neither their order nor the number of threads changes a token.
//
// Engine thread. Allocates only where an output asks for alternatives.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/model_runner.h"
#include "engine/scheduler.h"
#include "sampling/sampler.h"

namespace dunlin {

struct SampledToken {
  std::optional<TokenId> token;  // nullopt: no token may come next
  TokenLogprobs logprobs;
};

class RowSampler {
 public:
  // `runner` outlives it; its threads do the work.
  RowSampler(ModelRunner& runner, int max_seqs);

  // What one takes.
  static std::int64_t reserved_bytes(int num_threads, int max_seqs, int vocab_size);

  // `rows` of the whole batch and a spare one for each fork, changed where they are drawn from: the
  // last of each sequence that samples. Results in the order of those sequences, then of the forks;
  // valid until the next call.
  std::span<SampledToken> sample(const ScheduledBatch& batch, const StepRows& rows);

 private:
  struct Draw {
    const Sequence* seq;
    std::span<float> row;
    std::span<const float> maxima;
  };
  static void draw(Sampler& sampler, const Draw& draw, SampledToken& out);

  ModelRunner& runner_;
  std::vector<Sampler> samplers_;     // one a thread, at most kMaxSamplers
  std::vector<Draw> draws_;           // [max_seqs]
  std::vector<SampledToken> tokens_;  // [max_seqs]
};

}  // namespace dunlin
