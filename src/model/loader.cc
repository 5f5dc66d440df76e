#include "model/loader.h"

#include <cmath>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "model/decoder.h"
#include "model/weights.h"
#include "quant/dequantize.h"
#include "quant/packer.h"
#include "quant/quantize.h"

namespace dunlin {
namespace {

// A norm weight or bias, as floats in canonical order. One that is not a number would make every
// token wrong without a hint, so it is refused here.
Result<std::vector<float>> read_vector(const TensorSlot& slot, const FoundTensor& source) {
  const auto size = static_cast<std::size_t>(slot.cols);
  std::vector<float> stored(size), canonical(size);
  dequantize(source.view.dtype, source.view.data, stored.data(), slot.cols);
  for (std::size_t i = 0; i < size; ++i) {
    canonical[i] =
        stored[static_cast<std::size_t>(source.order.stored_row(static_cast<std::int64_t>(i)))];
    if (!std::isfinite(canonical[i])) {
      return invalid(fmt::format("tensor {} holds a value that is not a finite number", slot.name));
    }
  }
  return canonical;
}

// The matrix the other way round. Blocks run along rows, so quantised weights become F16.
std::vector<std::byte> transposed(const TensorView& stored, TensorView& view) {
  const std::int64_t rows = stored.rows(), cols = stored.cols();
  view = stored;
  view.rank = 2;
  view.shape = {cols, rows, 1, 1};
  if (dtype_info(stored.dtype).block_size > 1) view.dtype = DType::kF16;
  std::vector<float> values(static_cast<std::size_t>(rows * cols)), turned(values.size());
  dequantize(stored.dtype, stored.data, values.data(), rows * cols);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(cols),
                      col = i % static_cast<std::size_t>(cols);
    turned[col * static_cast<std::size_t>(rows) + row] = values[i];
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(view.size_bytes()));
  quantize(view.dtype, turned.data(), bytes.data(), rows * cols);
  view.data = bytes.data();
  return bytes;
}

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

// The type that a matrix is packed as.
Result<DType> packed_type(const FoundTensor& tensor, const TensorView& view,
                          const ModelConfig& config, const LoadOptions& options) {
  const DType dtype = loaded_type(options.recipe, tensor.name, view, config);
  if (dtype == view.dtype || is_float(tensor.view.dtype)) return dtype;
  return invalid(fmt::format("tensor {} is stored as {}; --quantize needs F32, F16 or BF16",
                             tensor.name, dtype_info(tensor.view.dtype).name));
}

Result<Weights> load_weights(const WeightSource& source, const ModelConfig& config,
                             const LoadOptions& options, ThreadPool& pool) {
  Weights weights;
  const std::vector<TensorSlot> slots = tensor_slots(config, weights);
  std::vector<std::pair<std::string, TensorView>> matrices;  // in the packer's order
  std::vector<std::vector<std::byte>> made;
  Packer packer(options.isa);
  std::int64_t total_bytes = 0, done_bytes = 0;
  for (const TensorSlot& slot : slots) {
    DUNLIN_ASSIGN(tensor, find_tensor(source, slot));
    if (slot.matrix == nullptr) {
      DUNLIN_ASSIGN(values, read_vector(slot, tensor));
      *slot.vector = std::move(values);
      continue;
    }
    TensorView view = tensor.view;
    if (tensor.is_transposed) made.push_back(transposed(tensor.view, view));
    DUNLIN_ASSIGN(dtype, packed_type(tensor, view, config, options));
    packer.add(view, tensor.order, *slot.matrix, dtype);
    matrices.push_back({slot.name, tensor.view});
    total_bytes += tensor.view.size_bytes();
  }
  std::mutex mutex;
  packer.run(pool, [&](std::size_t idx) {
    const TensorView& view = matrices[idx].second;
    source.release(view);
    if (!options.progress) return;
    const std::lock_guard lock(mutex);
    done_bytes += view.size_bytes();
    options.progress(done_bytes, total_bytes);
  });
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const Outcome packed = packer.outcome(i);
    if (!packed) return tl::unexpected(packed.error().with_prefix("tensor " + matrices[i].first));
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
  const int context = options.max_context > 0 ? options.max_context : config.context_length;
  const RopeConfig& rope = config.ropes[0];
  if (rope.factors == RopeFactors::kLongShort && context <= rope.original_context)
    weights.rope_factors.swap(weights.rope_factors_short);
  return std::make_unique<Decoder>(config, std::move(weights), std::move(pool), options.isa,
                                   options.kv_dtype);
}

}  // namespace dunlin
