#include "model/quant_recipe.h"

#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/quote.h"
#include "model/config.h"

namespace dunlin {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// The same number of bits or more, in blocks of 32.
DType with_short_blocks(DType dtype) {
  switch (dtype) {
    case DType::kQ2_K:
    case DType::kQ3_K: return DType::kIQ4_NL;
    case DType::kQ4_K: return DType::kQ5_0;
    case DType::kQ5_K: return DType::kQ5_1;
    case DType::kQ6_K: return DType::kQ8_0;
    default: return dtype;
  }
}

DType that_fits(DType dtype, std::int64_t cols) {
  if (cols % dtype_info(dtype).block_size == 0) return dtype;
  dtype = with_short_blocks(dtype);
  return cols % dtype_info(dtype).block_size == 0 ? dtype : DType::kF16;
}

// "blk.12.attn_v.weight": 12.
int layer_of(std::string_view tensor) {
  int layer = 0;
  std::from_chars(tensor.data() + 4, tensor.data() + tensor.size(), layer);
  return layer;
}

bool is_better_layer(int layer, int num_layers) {
  const int eighth = num_layers / 8;
  return layer < eighth || layer >= 7 * num_layers / 8 || (layer - eighth) % 3 == 2;
}

bool is_kept_better(std::string_view tensor, const ModelConfig& config) {
  if (!tensor.starts_with("blk."))
    return tensor == (config.tied_head ? "token_embd.weight" : "output.weight");
  return (contains(tensor, ".attn_v.") || contains(tensor, ".ffn_down")) &&
         is_better_layer(layer_of(tensor), config.num_layers());
}

}  // namespace

constexpr QuantRecipe::Row QuantRecipe::kRows[] = {
    {"f32", DType::kF32, DType::kF32, 0},     {"f16", DType::kF16, DType::kF16, 1},
    {"bf16", DType::kBF16, DType::kBF16, 32}, {"q8_0", DType::kQ8_0, DType::kQ8_0, 7},
    {"q6_k", DType::kQ6_K, DType::kQ6_K, 18}, {"q5_k_m", DType::kQ5_K, DType::kQ6_K, 17},
    {"q5_k", DType::kQ5_K, DType::kQ5_K, 16}, {"q5_1", DType::kQ5_1, DType::kQ5_1, 9},
    {"q5_0", DType::kQ5_0, DType::kQ5_0, 8},  {"q4_k_m", DType::kQ4_K, DType::kQ6_K, 15},
    {"q4_k", DType::kQ4_K, DType::kQ4_K, 14}, {"q4_1", DType::kQ4_1, DType::kQ4_1, 3},
    {"q4_0", DType::kQ4_0, DType::kQ4_0, 2},  {"q3_k", DType::kQ3_K, DType::kQ3_K, 11},
    {"q2_k", DType::kQ2_K, DType::kQ2_K, 10},
};

std::optional<QuantRecipe> QuantRecipe::find(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return QuantRecipe(row);
  return std::nullopt;
}

std::vector<std::string> QuantRecipe::names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

Result<std::optional<QuantRecipe>> QuantRecipe::parse(std::string_view name) {
  std::optional<QuantRecipe> found = find(name);
  if (found || name.empty()) return found;
  return invalid(fmt::format("weights can't be quantised to {}; known are {}",
                             quote_for_message(name), fmt::join(names(), ", ")));
}

bool is_never_quantized(std::string_view tensor, const TensorView& view) {
  return view.rank < 2 || !tensor.ends_with(".weight") || contains(tensor, "ffn_gate_inp") ||
         tensor == "position_embd.weight" || tensor == "token_types.weight";
}

DType QuantRecipe::type_of(std::string_view tensor, const TensorView& view,
                           const ModelConfig& config) const {
  if (is_never_quantized(tensor, view)) return DType::kF32;
  return that_fits(is_kept_better(tensor, config) ? row_->better : row_->main, view.cols());
}

DType loaded_type(const std::optional<QuantRecipe>& recipe, std::string_view tensor,
                  const TensorView& view, const ModelConfig& config) {
  if (!recipe || is_never_quantized(tensor, view) || dtype_info(view.dtype).block_size > 1)
    return view.dtype;
  return recipe->type_of(tensor, view, config);
}

}  // namespace dunlin
