#include "model/weight_sizes.h"

#include <cmath>

#include "base/check.h"
#include "quant/packer.h"
#include "tensor/buffer.h"

namespace dunlin {
namespace {

constexpr auto kAlignment = static_cast<std::int64_t>(Buffer::kAlignment);

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool is_expert(const TensorSlot& slot) { return slot.whole.find("_exps.") != slot.whole.npos; }

// A row of them is read for each token.
bool is_looked_up(const TensorSlot& slot, const ModelConfig& config) {
  return slot.name == "position_embd.weight" || slot.name == "token_types.weight" ||
         (slot.name == "token_embd.weight" && !config.tied_head);
}

}  // namespace

double WeightSizes::step_bytes(const MoeConfig& moe, double num_tokens) const {
  const auto one = static_cast<double>(read_bytes),
             all = static_cast<double>(read_bytes_all_experts);
  if (moe.num_experts == 0 || all <= one) return one;
  // An expert is missed by a token with probability 1 - k / n, by all of them with its power.
  const double share = static_cast<double>(moe.experts_per_token) / moe.num_experts;
  const double experts = (all - one) / (1 - share);
  return all - experts * std::pow(1 - share, num_tokens);
}

WeightSizes weight_sizes(const ModelConfig& config, Isa isa,
                         const std::function<DType(const TensorSlot&)>& dtype_of) {
  WeightSizes sizes;
  sizes.keeps_float_inputs = isa == Isa::kReference;
  double expert_bytes = 0;
  Weights weights;
  for (const TensorSlot& slot : tensor_slots(config, weights)) {
    const std::int64_t count = slot.rows * slot.cols;
    if (!slot.name.starts_with("rope_")) sizes.num_params += count;
    if (slot.matrix == nullptr) {
      const auto bytes = count * static_cast<std::int64_t>(sizeof(float));
      sizes.stored_bytes += bytes;
      sizes.packed_bytes += bytes;
      continue;
    }
    const DType dtype = dtype_of(slot);
    if (dtype_info(dtype).block_size == 1) sizes.keeps_float_inputs = true;
    const std::int64_t packed = aligned(Packer::packed_bytes(dtype, slot.rows, slot.cols, isa));
    sizes.stored_bytes += slot.rows * row_bytes(dtype, slot.cols);
    sizes.packed_bytes += packed;
    if (is_looked_up(slot, config)) continue;
    sizes.read_bytes_all_experts += packed;
    if (is_expert(slot))
      expert_bytes += static_cast<double>(packed);
    else
      sizes.read_bytes += packed;
  }
  if (config.moe.num_experts > 0) {
    sizes.read_bytes +=
        std::llround(expert_bytes * config.moe.experts_per_token / config.moe.num_experts);
  }
  return sizes;
}

WeightSizes weight_sizes(const ModelConfig& config, Isa isa, const QuantRecipe& recipe) {
  return weight_sizes(config, isa, [&](const TensorSlot& slot) {
    TensorView view;
    view.rank = 2;
    view.shape = {slot.rows, slot.cols, 1, 1};
    return recipe.type_of(slot.name, view, config);
  });
}

WeightSizes weight_sizes(const ModelConfig& config, Isa isa, const WeightSource& source,
                         const std::optional<QuantRecipe>& recipe) {
  return weight_sizes(config, isa, [&](const TensorSlot& slot) {
    const auto found = find_tensor(source, slot);
    DUNLIN_CHECK(found.has_value(), "the source has every tensor");
    TensorView view = found->view;
    if (found->is_transposed) {  // and will be turned, with blocks along its rows (loader.cc)
      view.shape = {slot.rows, slot.cols, 1, 1};
      if (dtype_info(view.dtype).block_size > 1) view.dtype = DType::kF16;
    }
    return loaded_type(recipe, found->name, view, config);
  });
}

WeightSizes ideal_weight_sizes(const ModelConfig& config, Isa isa, int bits) {
  WeightSizes sizes = weight_sizes(config, isa, *QuantRecipe::find(bits <= 4 ? "q4_0" : "q8_0"));
  const auto scale =
      static_cast<double>(sizes.num_params) * bits / 8 / static_cast<double>(sizes.packed_bytes);
  for (std::int64_t* bytes :
       {&sizes.packed_bytes, &sizes.read_bytes, &sizes.read_bytes_all_experts})
    *bytes = std::llround(static_cast<double>(*bytes) * scale);
  sizes.stored_bytes = sizes.packed_bytes;
  return sizes;
}

}  // namespace dunlin
