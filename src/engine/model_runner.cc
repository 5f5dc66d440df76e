#include "engine/model_runner.h"

namespace dunlin {

ModelRunner::ModelRunner(std::unique_ptr<Model> model, std::int32_t num_blocks,
                         const SchedulerConfig& config)
    : model_(std::move(model)),
      storage_(model_->kv_layout(), num_blocks),
      logits_(std::make_unique_for_overwrite<float[]>(
          static_cast<std::size_t>(config.max_logits_rows) *
          static_cast<std::size_t>(model_->limits().vocab_size))) {
  model_->reserve(config.max_batch_tokens, config.max_seqs, config.max_logits_rows);
}

std::span<float> ModelRunner::run(std::span<const BlockCopy> copies, const ForwardBatch& batch) {
  for (const BlockCopy& copy : copies) storage_.copy_block(copy.from, copy.to);
  const auto vocab_size = static_cast<std::size_t>(model_->limits().vocab_size);
  const std::span<float> logits(logits_.get(),
                                static_cast<std::size_t>(batch.num_outputs()) * vocab_size);
  model_->forward(batch, storage_, logits);
  return logits;
}

}  // namespace dunlin
