// The decoder of every architecture here: embedding, layers of attention and MLP around a residual
// with norms, logits. Encoders are the same without a causal mask and a head. What differs between
// architectures is in ModelConfig.
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
          KvFormats kv_formats);

  const ModelLimits& limits() const override { return limits_; }
  const KvLayout& kv_layout() const override { return kv_layout_; }
  ModelCounters counters() const override { return counters_; }
  void reserve(int max_tokens, int max_seqs, int max_outputs) override;
  void forward(const ForwardBatch& batch, KvStorage& kv, const ForwardOutputs& outputs) override;
  int num_threads() const override { return pool_->num_threads(); }
  void parallel_for(int num_chunks, FunctionRef<void(int chunk_idx)> fn) override {
    pool_->parallel_for(num_chunks, [fn](int chunk_idx, int) { fn(chunk_idx); });
  }

 private:
  void find_common_keys();
  void check(const ForwardBatch& batch, const ForwardOutputs& outputs) const;
  // Which tokens the last layer computes: those whose logits or hidden states are wanted.
  void find_active_tokens(const ForwardBatch& batch);
  // The residual's first rows; learned positions and token types, which join them, go to
  // scratch.delta.
  void embed_tokens(Step& step);
  // residual += delta (null: nothing to add), then its norm into the activations.
  void add_and_norm(Step& step, float* delta, const NormWeights& delta_norm,
                    const NormWeights& next, std::int64_t num_rows);
  // What the last add_and_norm() made of the residual.
  const float* normed() const;
  void compute_logits(Step& step, const ForwardOutputs& outputs);
  void copy_hidden(Step& step, std::span<float> hidden);

  ModelConfig config_;
  Weights weights_;
  std::unique_ptr<ThreadPool> pool_;  // after the weights, which must outlive it
  Isa isa_;
  ModelLimits limits_;
  KvLayout kv_layout_;
  ModelCounters counters_;
  std::vector<float> token_type_;  // [hidden_size] of every token, or empty
  StepScratch scratch_;
  LinearOrder linear_order_;
  int max_seqs_ = 0;
  int max_outputs_ = 0;
  std::vector<std::int32_t> active_tokens_;  // of the step, ascending
  // Where among them the batch's logits_indices (empty: they are the active ones) and
  // hidden_indices are.
  std::vector<std::int32_t> logits_rows_, hidden_rows_;
};

}  // namespace dunlin
