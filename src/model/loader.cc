#include "model/loader.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "model/decoder.h"
#include "model/weights.h"
#include "quant/dequantize.h"

namespace dunlin {
namespace {

// A norm weight or bias, as floats in canonical order. One that is not a number would make every
// token wrong without a hint, so it is refused here.
Result<std::vector<float>> read_vector(const TensorSlot& slot, const SourceTensor& source) {
  const auto size = static_cast<std::size_t>(slot.cols);
  std::vector<float> stored(size), canonical(size);
  dequantize(source.view.dtype, source.view.data, stored.data(), slot.cols);
  for (std::size_t i = 0; i < size; ++i) {
    canonical[i] =
        stored[static_cast<std::size_t>(source.row_order.stored_row(static_cast<std::int64_t>(i)))];
    if (!std::isfinite(canonical[i])) {
      return invalid(fmt::format("tensor {} holds a value that is not a finite number", slot.name));
    }
  }
  return canonical;
}

Result<Weights> load_weights(const WeightSource& source, const ModelConfig& config,
                             const LoadOptions& options, ThreadPool& pool) {
  Weights weights;
  const std::vector<TensorSlot> slots = tensor_slots(config, weights);
  std::int64_t total_bytes = 0, done_bytes = 0;
  for (const TensorSlot& slot : slots) total_bytes += source.find(slot.name)->view.size_bytes();
  for (const TensorSlot& slot : slots) {
    const SourceTensor tensor = *source.find(slot.name);
    if (slot.matrix != nullptr) {
      auto packed = PackedMatrix::pack(tensor.view, tensor.row_order, options.isa, pool);
      if (!packed) return tl::unexpected(packed.error().with_prefix("tensor " + slot.name));
      *slot.matrix = std::move(*packed);
    } else {
      DUNLIN_ASSIGN(values, read_vector(slot, tensor));
      *slot.vector = std::move(values);
    }
    source.release(tensor);
    done_bytes += tensor.view.size_bytes();
    if (options.progress) options.progress(done_bytes, total_bytes);
  }
  return weights;
}

}  // namespace

Result<std::unique_ptr<Model>> load_model(const WeightSource& source, const ModelConfig& config,
                                          const LoadOptions& options) {
  DUNLIN_TRY(validate(config));
  DUNLIN_TRY(check_tensors(config, source));
  if (options.kv_dtype != DType::kF32 && options.kv_dtype != DType::kF16 &&
      options.kv_dtype != DType::kBF16) {
    return invalid(fmt::format("keys and values can't be stored as {}; use F32, F16 or BF16",
                               dtype_info(options.kv_dtype).name));
  }
  auto pool = std::make_unique<ThreadPool>(options.num_threads);
  DUNLIN_ASSIGN(weights, load_weights(source, config, options, *pool));
  return std::make_unique<Decoder>(config, std::move(weights), std::move(pool), options.isa,
                                   options.kv_dtype);
}

}  // namespace dunlin
