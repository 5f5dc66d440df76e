#include "model/loader.h"

#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "kernels/kv_codec.h"
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

class WeightLoader {
 public:
  WeightLoader(const WeightSource& source, const ModelConfig& config, const LoadOptions& options,
               ThreadPool& pool)
      : source_(source), config_(config), options_(options), pool_(pool) {}

  Result<Weights> load() {
    Weights weights;
    const std::vector<TensorSlot> slots = tensor_slots(config_, weights);
    Batch stored(options_.isa);
    std::map<std::string, std::vector<const TensorSlot*>> to_prepare;  // by the tensor's name
    for (const TensorSlot& slot : slots) {
      DUNLIN_ASSIGN(tensor, find_tensor(source_, slot));
      if (slot.matrix == nullptr) {
        DUNLIN_TRY(load_vector(slot, tensor));
        continue;
      }
      note_types(tensor);
      total_bytes_ += tensor.view.size_bytes();
      if (tensor.view.data == nullptr)
        to_prepare[tensor.name].push_back(&slot);
      else
        add(slot, tensor, stored);
    }
    if (options_.recipe && !has_floats_) {
      return invalid(
          fmt::format("its weights are quantised already, as {}; --quantize is for F32, "
                      "F16 and BF16",
                      dtype_info(stored_dtype_).name));
    }
    DUNLIN_TRY(pack(stored));
    for (const auto& [name, parts] : to_prepare) DUNLIN_TRY(load_prepared(name, parts));
    return weights;
  }

 private:
  struct Batch {
    explicit Batch(Isa isa) : packer(isa) {}
    Packer packer;
    std::vector<std::pair<std::string, TensorView>> matrices;  // in the packer's order
    std::vector<std::vector<std::byte>> made;
  };

  // A vector that has to be made is small, even where it holds those of all experts.
  Outcome load_vector(const TensorSlot& slot, FoundTensor& tensor) {
    if (tensor.view.data == nullptr) {
      source_.prepare(tensor.name);
      DUNLIN_ASSIGN(prepared, find_tensor(source_, slot));
      tensor = std::move(prepared);
    }
    DUNLIN_ASSIGN(values, read_vector(slot, tensor));
    *slot.vector = std::move(values);
    return {};
  }

  void note_types(const FoundTensor& tensor) {
    if (is_never_quantized(tensor.name, tensor.view)) return;
    has_floats_ = has_floats_ || is_float(tensor.view.dtype);
    stored_dtype_ = tensor.view.dtype;
  }

  void add(const TensorSlot& slot, const FoundTensor& tensor, Batch& batch) {
    TensorView view = tensor.view;
    if (tensor.is_transposed) batch.made.push_back(transposed(tensor.view, view));
    const DType dtype = loaded_type(options_.recipe, tensor.name, view, config_);
    batch.packer.add(view, tensor.order, *slot.matrix, dtype);
    batch.matrices.push_back({slot.name, tensor.view});
  }

  Outcome pack(Batch& batch) {
    if (batch.matrices.empty()) return {};
    std::mutex mutex;
    batch.packer.run(pool_, [&](std::size_t idx) {
      const TensorView& view = batch.matrices[idx].second;
      source_.release(view);
      if (!options_.progress) return;
      const std::lock_guard lock(mutex);
      done_bytes_ += view.size_bytes();
      options_.progress(done_bytes_, total_bytes_);
    });
    for (std::size_t i = 0; i < batch.matrices.size(); ++i) {
      const Outcome packed = batch.packer.outcome(i);
      if (packed) continue;
      return tl::unexpected(packed.error().with_prefix("tensor " + batch.matrices[i].first));
    }
    return {};
  }

  // All matrices of one tensor that has to be made, so that it is there only meanwhile.
  Outcome load_prepared(const std::string& name, const std::vector<const TensorSlot*>& slots) {
    source_.prepare(name);
    Batch batch(options_.isa);
    for (const TensorSlot* slot : slots) {
      DUNLIN_ASSIGN(tensor, find_tensor(source_, *slot));
      add(*slot, tensor, batch);
    }
    DUNLIN_TRY(pack(batch));
    source_.discard(name);
    return {};
  }

  const WeightSource& source_;
  const ModelConfig& config_;
  const LoadOptions& options_;
  ThreadPool& pool_;
  std::int64_t total_bytes_ = 0, done_bytes_ = 0;
  bool has_floats_ = false;  // among the matrices that a recipe quantises
  DType stored_dtype_ = DType::kF32;
};

}  // namespace

Result<std::unique_ptr<Model>> load_model(const WeightSource& source, const ModelConfig& config,
                                          const LoadOptions& options) {
  DUNLIN_TRY(validate(config));
  DUNLIN_TRY(check_tensors(config, source));
  for (const KvFormat format : {options.kv_formats.k, options.kv_formats.v}) {
    if (kv_format_info(format).key_group > 0 && config.head_dim > kMostKvChannels)
      return invalid(fmt::format("heads of {} channels can't be cached as {}; use f16",
                                 config.head_dim, kv_format_info(format).name));
  }
  auto pool = std::make_unique<ThreadPool>(options.num_threads);
  DUNLIN_ASSIGN(weights, WeightLoader(source, config, options, *pool).load());
  const int context = options.max_context > 0 ? options.max_context : config.context_length;
  const RopeConfig& rope = config.ropes[0];
  if (rope.factors == RopeFactors::kLongShort && context <= rope.original_context)
    weights.rope_factors.swap(weights.rope_factors_short);
  return std::make_unique<Decoder>(config, std::move(weights), std::move(pool), options.isa,
                                   options.kv_formats);
}

}  // namespace dunlin
