// What a model's weights take, from its configuration alone: every matrix and vector that
// tensor_slots() lists, in the types of a checkpoint or of a recipe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "cpu/isa.h"
#include "model/config.h"
#include "model/quant_recipe.h"
#include "model/weights.h"
#include "tensor/dtype.h"

namespace dunlin {

struct WeightSizes {
  std::int64_t num_params = 0;    // without what only scales positions
  std::int64_t stored_bytes = 0;  // in a file
  std::int64_t packed_bytes = 0;  // in memory, as the loader lays them out
  // Of packed_bytes, what a step over one token reads, and over so many that every expert is
  // wanted. An embedding that gives no logits is read a row a token: not counted.
  std::int64_t read_bytes = 0;
  std::int64_t read_bytes_all_experts = 0;
  bool keeps_float_inputs = false;  // linear layers read floats: so do plain types, and references

  // What a step over num_tokens tokens reads, when tokens choose experts evenly.
  double step_bytes(const MoeConfig& moe, double num_tokens) const;
};

// `dtype_of`: of each slot that is a matrix.
WeightSizes weight_sizes(const ModelConfig& config, Isa isa,
                         const std::function<DType(const TensorSlot&)>& dtype_of);
// As the recipe would make them of a checkpoint that need not exist.
WeightSizes weight_sizes(const ModelConfig& config, Isa isa, const QuantRecipe& recipe);
// As the source has them, or a recipe makes them on load: what load_model() will pack. The source
// has passed check_tensors().
WeightSizes weight_sizes(const ModelConfig& config, Isa isa, const WeightSource& source,
                         const std::optional<QuantRecipe>& recipe = std::nullopt);
// So many bits a weight and nothing else, as articles count ("a 7B model in INT4 takes 3.5 GB"). No
// file has such weights: scales and the output layer come on top.
WeightSizes ideal_weight_sizes(const ModelConfig& config, Isa isa, int bits);

}  // namespace dunlin
