// The decoder of every architecture here: embedding, layers of attention and MLP around a residual
// with norms, logits. What differs between architectures is in ModelConfig.
//
// A step is few phases of the pool a layer: QKV, (rotate and store), attention, output projection,
// (norm), gate and up, (gate), down, (norm). Those in brackets run on the calling thread alone
// while a step has few tokens.
#pragma once

#include <memory>

#include "cpu/isa.h"
#include "cpu/thread_pool.h"
#include "model/config.h"
#include "model/model.h"
#include "model/step.h"
#include "model/weights.h"

namespace dunlin {

class Decoder final : public Model {
 public:
  // `weights` is complete for `config` and packed for `isa`.
  Decoder(ModelConfig config, Weights weights, std::unique_ptr<ThreadPool> pool, Isa isa,
          DType kv_dtype);

  const ModelLimits& limits() const override { return limits_; }
  const KvLayout& kv_layout() const override { return kv_layout_; }
  ModelCounters counters() const override { return counters_; }
  void reserve(int max_tokens, int max_seqs, int max_outputs) override;
  void forward(const ForwardBatch& batch, KvStorage& kv, std::span<float> logits,
               std::span<float> maxima) override;
  int num_threads() const override { return pool_->num_threads(); }
  void parallel_for(int num_chunks, FunctionRef<void(int chunk_idx)> fn) override {
    pool_->parallel_for(num_chunks, [fn](int chunk_idx, int) { fn(chunk_idx); });
  }

 private:
  void check(const ForwardBatch& batch, std::span<const float> logits) const;
  // The residual's first rows; learned positions, which join them, go to scratch.delta.
  void embed_tokens(Step& step);
  // residual += delta (null: nothing to add), then its norm into the activations.
  void add_and_norm(Step& step, float* delta, const NormWeights& delta_norm,
                    const NormWeights& next, std::int64_t num_rows);
  void compute_logits(Step& step, std::span<float> logits, std::span<float> maxima);

  ModelConfig config_;
  Weights weights_;
  std::unique_ptr<ThreadPool> pool_;  // after the weights, which must outlive it
  Isa isa_;
  ModelLimits limits_;
  KvLayout kv_layout_;
  ModelCounters counters_;
  StepScratch scratch_;
  LinearOrder linear_order_;
  int max_seqs_ = 0;
  int max_outputs_ = 0;
};

}  // namespace dunlin
