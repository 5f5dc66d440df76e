#include "engine/model_runner.h"

#include "base/row_maxima.h"

namespace dunlin {

ModelRunner::ModelRunner(std::unique_ptr<Model> model, std::int32_t num_blocks,
                         const SchedulerConfig& config)
    : model_(std::move(model)),
      storage_(model_->kv_layout(), num_blocks),
      logits_(std::make_unique_for_overwrite<float[]>(
          static_cast<std::size_t>(config.max_logits_rows) *
          static_cast<std::size_t>(model_->limits().vocab_size))),
      maxima_(std::make_unique_for_overwrite<float[]>(
          static_cast<std::size_t>(config.max_logits_rows) *
          maxima_size(static_cast<std::size_t>(model_->limits().vocab_size)))),
      hidden_(std::make_unique_for_overwrite<float[]>(
          static_cast<std::size_t>(config.max_batch_tokens) *
          static_cast<std::size_t>(model_->limits().hidden_size))) {
  model_->reserve(config.max_batch_tokens, config.max_seqs, config.max_logits_rows);
}

StepRows ModelRunner::run(std::span<const BlockCopy> copies, const ForwardBatch& batch,
                          int num_spare_rows) {
  for (const BlockCopy& copy : copies) storage_.copy_block(copy.from, copy.to);
  const auto vocab_size = static_cast<std::size_t>(model_->limits().vocab_size);
  const auto num_rows = static_cast<std::size_t>(batch.num_outputs());
  const std::span<float> logits(logits_.get(), num_rows * vocab_size);
  const std::span<float> maxima(maxima_.get(), num_rows * maxima_size(vocab_size));
  const std::span<float> hidden(hidden_.get(),
                                static_cast<std::size_t>(batch.num_hidden()) *
                                    static_cast<std::size_t>(model_->limits().hidden_size));
  model_->forward(batch, storage_, {logits, maxima, hidden});
  const std::size_t num_all = num_rows + static_cast<std::size_t>(num_spare_rows);
  return {{logits_.get(), num_all * vocab_size},
          {maxima_.get(), num_all * maxima_size(vocab_size)},
          hidden};
}

}  // namespace dunlin
