// Weights from a source into the layout that the kernels read, and a model around them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "cpu/isa.h"
#include "dunlin/status.h"
#include "formats/weight_source.h"
#include "model/config.h"
#include "model/model.h"
#include "model/quant_recipe.h"
#include "tensor/dtype.h"
#include "tensor/kv_format.h"

namespace dunlin {

struct LoadOptions {
  Isa isa = best_isa();
  int num_threads = 0;   // of the model's pool, the caller included; 0: default_num_threads()
  KvFormats kv_formats;  // of the cache
  // Quantises weights of F32, F16 and BF16 on the way, to what convert_to_gguf would write.
  std::optional<QuantRecipe> recipe;
  // Tokens of the longest sequence to be served; 0: what the model was trained for. Models with
  // long and short RoPE factors (Phi-3) use the short ones where it is within their first training.
  int max_context = 0;
  // Called after each matrix with the bytes read so far and in all, by one thread at a time, not
  // always the same.
  std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)> progress;
};

// Checks every tensor (check_tensors), then packs them in order with all threads, letting go of
// the source's pages behind it: the peak is the packed weights and one tensor. The source is
// not needed afterwards. The thread that calls forward() later must be one thread, not
// necessarily this one.
Result<std::unique_ptr<Model>> load_model(const WeightSource& source, const ModelConfig& config,
                                          const LoadOptions& options);

}  // namespace dunlin
