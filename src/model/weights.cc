#include "model/weights.h"

#include <functional>
#include <optional>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

namespace dunlin {
namespace {

class SlotList {
 public:
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  void vector(std::string_view name, std::vector<float>& target, std::int64_t size) {
    slots_.push_back({prefix_ + std::string(name), 1, size, nullptr, &target});
  }
  // NAME.weight, and NAME.bias where the model has one.
  void linear(std::string_view name, LinearWeights& target, std::int64_t out, std::int64_t in,
              bool has_bias) {
    const std::string base = prefix_ + std::string(name);
    slots_.push_back({base + ".weight", out, in, &target.matrix, nullptr});
    if (has_bias) slots_.push_back({base + ".bias", 1, out, nullptr, &target.bias});
  }
  std::vector<TensorSlot> take() { return std::move(slots_); }

 private:
  std::string prefix_;
  std::vector<TensorSlot> slots_;
};

void add_attention(const ModelConfig& c, LayerWeights& layer, SlotList& list) {
  list.vector("attn_norm.weight", layer.attn_norm, c.hidden_size);
  list.linear("attn_q", layer.q, c.q_size(), c.hidden_size, c.qkv_bias);
  list.linear("attn_k", layer.k, c.kv_size(), c.hidden_size, c.qkv_bias);
  list.linear("attn_v", layer.v, c.kv_size(), c.hidden_size, c.qkv_bias);
  if (c.qk_norm) {
    list.vector("attn_q_norm.weight", layer.q_norm, c.head_dim);
    list.vector("attn_k_norm.weight", layer.k_norm, c.head_dim);
  }
  list.linear("attn_output", layer.o, c.hidden_size, c.q_size(), c.o_bias);
  if (c.post_norms) list.vector("post_attention_norm.weight", layer.post_attn_norm, c.hidden_size);
}

void add_mlp(const ModelConfig& c, LayerWeights& layer, SlotList& list) {
  list.vector("ffn_norm.weight", layer.ffn_norm, c.hidden_size);
  list.linear("ffn_gate", layer.gate, c.ffn_size, c.hidden_size, c.ffn_bias);
  list.linear("ffn_up", layer.up, c.ffn_size, c.hidden_size, c.ffn_bias);
  list.linear("ffn_down", layer.down, c.hidden_size, c.ffn_size, c.ffn_bias);
  if (c.post_norms) list.vector("post_ffw_norm.weight", layer.post_ffn_norm, c.hidden_size);
}

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

bool is_weight(DType dtype) { return is_float(dtype) || dtype >= DType::kQ4_0; }

std::string shape_text(const TensorView& view) {
  std::string text = "[";
  for (int i = 0; i < view.rank; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", view.shape[static_cast<std::size_t>(i)]);
  }
  return text + "]";
}

Outcome check_slot(const TensorSlot& slot, const TensorView& view) {
  const bool is_matrix = slot.matrix != nullptr;
  const bool fits = is_matrix
                        ? view.rank == 2 && view.rows() == slot.rows && view.cols() == slot.cols
                        : view.rows() == 1 && view.cols() == slot.cols;
  if (!fits) {
    const std::string wanted =
        is_matrix ? fmt::format("[{}, {}]", slot.rows, slot.cols) : fmt::format("[{}]", slot.cols);
    return invalid(fmt::format("tensor {} is {}, but the model's numbers make it {}", slot.name,
                               shape_text(view), wanted));
  }
  const DTypeInfo& info = dtype_info(view.dtype);
  if (!(is_matrix ? is_weight(view.dtype) : is_float(view.dtype))) {
    return invalid(fmt::format("tensor {} is of type {}, which is no type for {}", slot.name,
                               info.name, is_matrix ? "a weight matrix" : "a vector of floats"));
  }
  if (view.cols() % info.block_size != 0) {
    return invalid(fmt::format("tensor {} has rows of {} elements, which are no whole blocks of {}",
                               slot.name, view.cols(), info.name));
  }
  return {};
}

Outcome check_all(const ModelConfig& config,
                  const std::function<std::optional<TensorView>(std::string_view)>& find) {
  Weights weights;
  for (const TensorSlot& slot : tensor_slots(config, weights)) {
    const std::optional<TensorView> view = find(slot.name);
    if (!view) return invalid(fmt::format("tensor {} is missing", slot.name));
    DUNLIN_TRY(check_slot(slot, *view));
  }
  return {};
}

}  // namespace

std::vector<TensorSlot> tensor_slots(const ModelConfig& config, Weights& weights) {
  SlotList list;
  list.linear("token_embd", weights.token_embedding, config.vocab_size, config.hidden_size, false);
  if (config.ropes[0].has_factors) {
    list.vector("rope_freqs.weight", weights.rope_factors, config.ropes[0].dims / 2);
  }
  weights.layers.resize(config.layers.size());
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    list.set_prefix(fmt::format("blk.{}.", i));
    add_attention(config, weights.layers[i], list);
    add_mlp(config, weights.layers[i], list);
  }
  list.set_prefix("");
  list.vector("output_norm.weight", weights.output_norm, config.hidden_size);
  if (!config.tied_head) {
    list.linear("output", weights.head, config.vocab_size, config.hidden_size, false);
  }
  return list.take();
}

Outcome check_tensors(const ModelConfig& config, const WeightSource& source) {
  return check_all(config, [&](std::string_view name) -> std::optional<TensorView> {
    const std::optional<SourceTensor> tensor = source.find(name);
    if (!tensor) return std::nullopt;
    return tensor->view;
  });
}

Outcome check_tensors(const ModelConfig& config, const GgufFile& file) {
  Outcome complete = check_all(config, [&](std::string_view name) -> std::optional<TensorView> {
    const GgufTensor* tensor = file.find_tensor(name);
    if (tensor == nullptr) return std::nullopt;
    return tensor->view;
  });
  if (!complete) return tl::unexpected<Status>(complete.error().with_prefix(file.path()));

  Weights weights;
  std::unordered_set<std::string> known;
  for (TensorSlot& slot : tensor_slots(config, weights)) known.insert(std::move(slot.name));
  for (const GgufTensor& tensor : file.tensors()) {
    if (!known.contains(std::string(tensor.name))) {
      return fail(StatusCode::kUnimplemented,
                  fmt::format("{}: tensor {} is not part of architecture {} as supported here",
                              file.path(), tensor.name, config.architecture));
    }
  }
  return {};
}

}  // namespace dunlin
