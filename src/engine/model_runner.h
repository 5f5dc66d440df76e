// ModelRunner: owns the model, the KV bytes and the logits, and runs one batch.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/scheduler.h"
#include "kv/kv_storage.h"
#include "model/model.h"

namespace dunlin {

// What a step computed, valid and writable until the next one: num_outputs rows of logits, and as
// many spare ones as were asked for behind them.
struct StepRows {
  std::span<float> values;        // [rows, vocab_size]
  std::span<float> maxima;        // [rows, maxima_size(vocab_size)] (base/row_maxima.h)
  std::span<const float> hidden;  // [num_hidden, hidden_size]
};

class ModelRunner {
 public:
  ModelRunner(std::unique_ptr<Model> model, std::int32_t num_blocks, const SchedulerConfig& config);

  // Runs the copies, in order, and then the batch. Engine thread.
  StepRows run(std::span<const BlockCopy> copies, const ForwardBatch& batch, int num_spare_rows);

  // The model's threads, idle between runs (Model::parallel_for).
  int num_threads() const { return model_->num_threads(); }
  void parallel_for(int num_chunks, FunctionRef<void(int chunk_idx)> fn) {
    model_->parallel_for(num_chunks, fn);
  }

  KvStorage& storage() { return storage_; }
  const ModelLimits& limits() const { return model_->limits(); }
  ModelCounters counters() const { return model_->counters(); }

 private:
  std::unique_ptr<Model> model_;
  KvStorage storage_;
  std::unique_ptr<float[]> logits_;  // [max_logits_rows, vocab_size], untouched until used
  std::unique_ptr<float[]> maxima_;  // [max_logits_rows, maxima_size(vocab_size)], likewise
  std::unique_ptr<float[]> hidden_;  // [max_batch_tokens, hidden_size], likewise
};

}  // namespace dunlin
