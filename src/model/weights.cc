#include "model/weights.h"

#include <optional>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "base/quote.h"

namespace dunlin {
namespace {

// A part of a tensor that may be stored as one: "attn_qkv", rows [first_row, + rows) of whole_rows.
struct Part {
  std::string whole{};
  std::int64_t first_row = 0;
  std::int64_t whole_rows = 0;
  bool is_transposed = false;
};

class SlotList {
 public:
  explicit SlotList(const ModelConfig& config) : config_(config) {}

  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  void vector(std::string_view name, std::vector<float>& target, std::int64_t size) {
    TensorSlot& slot = slots_.emplace_back();
    slot.name = prefix_ + std::string(name);
    slot.cols = size;
    slot.vector = &target;
  }
  void norm(std::string_view name, NormWeights& target, std::int64_t size) {
    vector(std::string(name) + ".weight", target.weight, size);
    if (config_.norm_bias) vector(std::string(name) + ".bias", target.bias, size);
  }
  // NAME.weight, and NAME.bias where the model has one.
  void linear(std::string_view name, LinearWeights& target, std::int64_t out, std::int64_t in,
              bool has_bias, RowOrder gguf_order = {}, const Part& part = {}) {
    const std::string base = prefix_ + std::string(name);
    TensorSlot slot;
    slot.name = base + ".weight";
    slot.rows = out;
    slot.cols = in;
    slot.matrix = &target.matrix;
    slot.gguf_order = gguf_order;
    set_part(part, ".weight", slot);
    slots_.push_back(slot);
    if (!has_bias) return;
    slot.name = base + ".bias";
    slot.rows = 1;
    slot.cols = out;
    slot.matrix = nullptr;
    slot.vector = &target.bias;
    set_part(part, ".bias", slot);
    slots_.push_back(std::move(slot));
  }
  std::vector<TensorSlot> take() { return std::move(slots_); }

 private:
  void set_part(const Part& part, std::string_view end, TensorSlot& slot) const {
    if (part.whole.empty()) return;
    slot.whole = prefix_ + part.whole + std::string(end);
    slot.first_row = part.first_row;
    slot.whole_rows = part.whole_rows;
    slot.part_is_transposed = part.is_transposed;
  }

  const ModelConfig& config_;
  std::string prefix_;
  std::vector<TensorSlot> slots_;
};

// A matrix a head. Stored is one tensor of them all, "attn_k_b" [num_heads, kv_rank, nope_dim] and
// "attn_v_b" [num_heads, value_dim, kv_rank]; or, in older files, "attn_kv_b" with each head's
// transposed k_b and its v_b.
void add_heads(const ModelConfig& c, LatentWeights& weights, SlotList& list) {
  const LatentAttention& latent = c.latent;
  const std::int64_t heads = c.num_heads, rank = latent.kv_rank, value = latent.value_dim;
  const std::int64_t rows = latent.nope_dim + value;  // of a head in the older form
  weights.k_b.resize(static_cast<std::size_t>(heads));
  weights.v_b.resize(static_cast<std::size_t>(heads));
  for (std::int64_t h = 0; h < heads; ++h) {
    Part k{"attn_k_b", h * rank, heads * rank}, v{"attn_v_b", h * value, heads * value};
    if (latent.fused_kv_b) {
      k = {"attn_kv_b", h * rows, heads * rows, true};
      v = {"attn_kv_b", h * rows + latent.nope_dim, heads * rows};
    }
    const auto at = static_cast<std::size_t>(h);
    list.linear(fmt::format("attn_k_b.{}", h), weights.k_b[at], rank, latent.nope_dim, false, {},
                k);
    list.linear(fmt::format("attn_v_b.{}", h), weights.v_b[at], value, rank, false, {}, v);
  }
}

void add_latent_attention(const ModelConfig& c, LayerWeights& layer, SlotList& list) {
  const LatentAttention& latent = c.latent;
  LatentWeights& weights = layer.latent;
  const std::int64_t q = std::int64_t{c.num_heads} * latent.query_dim();
  if (latent.q_rank > 0) {
    list.linear("attn_q_a", weights.q_a, latent.q_rank, c.hidden_size, false);
    list.norm("attn_q_a_norm", weights.q_a_norm, latent.q_rank);
    list.linear("attn_q_b", weights.q_b, q, latent.q_rank, false);
  } else {
    list.linear("attn_q", layer.q, q, c.hidden_size, false);
  }
  list.linear("attn_kv_a_mqa", weights.kv_a, c.head_dim, c.hidden_size, false);
  list.norm("attn_kv_a_norm", weights.kv_a_norm, latent.kv_rank);
  add_heads(c, weights, list);
}

void add_qkv(const ModelConfig& c, LayerWeights& layer, SlotList& list) {
  const RowOrder order{c.gguf_interleaves_qk ? c.head_dim : 0};
  const std::int64_t q = c.q_size(), kv = c.kv_size(), all = q + 2 * kv;
  list.linear("attn_q", layer.q, q, c.hidden_size, c.qkv_bias, order, {"attn_qkv", 0, all});
  list.linear("attn_k", layer.k, kv, c.hidden_size, c.qkv_bias, order, {"attn_qkv", q, all});
  list.linear("attn_v", layer.v, kv, c.hidden_size, c.qkv_bias, {}, {"attn_qkv", q + kv, all});
  if (c.qk_norm != QkNorm::kNone) {
    const bool whole = c.qk_norm == QkNorm::kWhole;
    list.norm("attn_q_norm", layer.q_norm, whole ? q : c.head_dim);
    list.norm("attn_k_norm", layer.k_norm, whole ? kv : c.head_dim);
  }
}

void add_attention(const ModelConfig& c, LayerWeights& layer, SlotList& list) {
  // GGUF gives the norm of a parallel block's MLP the name that is that of both where there is one.
  if (c.pre_norms)
    list.norm(c.parallel_norms ? "attn_norm_2" : "attn_norm", layer.attn_norm, c.hidden_size);
  (c.is_latent() ? add_latent_attention : add_qkv)(c, layer, list);
  list.linear("attn_output", layer.o, c.hidden_size, c.attn_out_size(), c.o_bias);
  if (c.attention_sinks) list.vector("attn_sinks.weight", layer.sinks, c.num_heads);
  if (c.post_norms) list.norm("post_attention_norm", layer.post_attn_norm, c.hidden_size);
}

void add_mlp(const ModelConfig& c, MlpWeights& mlp, SlotList& list) {
  const std::int64_t ffn = c.ffn_size;
  // One tensor of both is called ffn_up.
  if (c.gated_mlp)
    list.linear("ffn_gate", mlp.gate, ffn, c.hidden_size, c.ffn_bias, {}, {"ffn_up", 0, 2 * ffn});
  list.linear("ffn_up", mlp.up, ffn, c.hidden_size, c.ffn_bias, {}, {"ffn_up", ffn, 2 * ffn});
  list.linear("ffn_down", mlp.down, c.hidden_size, ffn, c.ffn_bias);
}

// Experts are stored one by one or stacked, [num_experts, out, in].
void add_experts(const ModelConfig& c, MoeWeights& moe, SlotList& list) {
  const MoeConfig& m = c.moe;
  const std::int64_t ffn = m.ffn_size, hidden = c.hidden_size, all = m.num_experts;
  list.linear("ffn_gate_inp", moe.router, all, hidden, m.bias);
  if (m.correction_bias) list.vector("exp_probs_b.bias", moe.correction_bias, all);
  moe.experts.resize(static_cast<std::size_t>(all));
  for (std::int64_t e = 0; e < all; ++e) {
    MlpWeights& expert = moe.experts[static_cast<std::size_t>(e)];
    const auto add = [&](std::string_view name, LinearWeights& target, std::int64_t out,
                         std::int64_t in) {
      list.linear(fmt::format("{}.{}", name, e), target, out, in, m.bias, {},
                  {fmt::format("{}_exps", name), e * out, all * out});
    };
    add("ffn_gate", expert.gate, ffn, hidden);
    add("ffn_up", expert.up, ffn, hidden);
    add("ffn_down", expert.down, hidden, ffn);
  }
  if (m.shared_ffn_size == 0) return;
  list.linear("ffn_gate_shexp", moe.shared.gate, m.shared_ffn_size, hidden, false);
  list.linear("ffn_up_shexp", moe.shared.up, m.shared_ffn_size, hidden, false);
  list.linear("ffn_down_shexp", moe.shared.down, hidden, m.shared_ffn_size, false);
  if (m.shared_gate) list.linear("ffn_gate_inp_shexp", moe.shared_gate, 1, hidden, false);
}

void add_ffn(const ModelConfig& c, const LayerConfig& layer_config, LayerWeights& layer,
             SlotList& list) {
  if (c.parallel_norms) list.norm("attn_norm", layer.ffn_norm, c.hidden_size);
  if (c.pre_norms && !c.parallel) {
    list.norm(c.ffn_norm_is_post_attention ? "post_attention_norm" : "ffn_norm", layer.ffn_norm,
              c.hidden_size);
  }
  if (layer_config.has_experts)
    add_experts(c, layer.moe, list);
  else
    add_mlp(c, layer.mlp, list);
  if (c.post_norms) list.norm("post_ffw_norm", layer.post_ffn_norm, c.hidden_size);
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

Outcome check_type(std::string_view name, const TensorView& view, bool is_matrix) {
  const DTypeInfo& info = dtype_info(view.dtype);
  if (!(is_matrix ? is_weight(view.dtype) : is_float(view.dtype))) {
    return invalid(fmt::format("tensor {} is of type {}, which is no type for {}", name, info.name,
                               is_matrix ? "a weight matrix" : "a vector of floats"));
  }
  if (view.cols() % info.block_size != 0) {
    return invalid(fmt::format("tensor {} has rows of {} elements, which are no whole blocks of {}",
                               name, view.cols(), info.name));
  }
  return {};
}

// The slot's part of the tensor that holds it, which is `view`.
TensorView part_of(const TensorSlot& slot, const TensorView& view) {
  const bool is_matrix = slot.matrix != nullptr;
  TensorView part = view;
  part.rank = is_matrix ? 2 : 1;
  part.shape = {is_matrix ? slot.rows : slot.cols, is_matrix ? slot.cols : 1, 1, 1};
  if (slot.part_is_transposed) std::swap(part.shape[0], part.shape[1]);
  if (part.data == nullptr) return part;  // to be prepared
  part.data += row_bytes(view.dtype, is_matrix ? view.cols() : 1) * slot.first_row;
  return part;
}

// Named after the block in front of them, held by the block that reads them.
void add_residual_norms(const ModelConfig& c, Weights& weights, SlotList& list) {
  list.norm("token_embd_norm", weights.layers[0].attn_norm, c.hidden_size);
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    const bool is_last = i + 1 == weights.layers.size();
    NormWeights& next = is_last ? weights.output_norm : weights.layers[i + 1].attn_norm;
    list.norm(fmt::format("blk.{}.attn_output_norm", i), weights.layers[i].ffn_norm, c.hidden_size);
    list.norm(fmt::format("blk.{}.layer_output_norm", i), next, c.hidden_size);
  }
}

}  // namespace

Result<FoundTensor> find_tensor(const WeightSource& source, const TensorSlot& slot) {
  const bool is_matrix = slot.matrix != nullptr;
  const auto length = [&](const TensorView& view) {
    return is_matrix ? view.rows() : view.num_elements();
  };
  std::optional<TensorView> view = source.find(slot.name);
  bool is_part = false;
  // A fused tensor may bear the name of one of its parts.
  if (!slot.whole.empty() && (!view || slot.name == slot.whole)) {
    const std::optional<TensorView> whole = source.find(slot.whole);
    is_part = whole && (slot.name != slot.whole || length(*whole) == slot.whole_rows);
    if (is_part) view = whole;
  }
  if (!view) return invalid(fmt::format("tensor {} is missing", slot.name));
  const std::string& name = is_part ? slot.whole : slot.name;
  const std::int64_t rows = is_matrix ? (is_part ? slot.whole_rows : slot.rows) : 1;
  const bool is_transposed = is_part && slot.part_is_transposed;
  const std::int64_t cols = is_transposed           ? slot.rows
                            : is_matrix || !is_part ? slot.cols
                                                    : slot.whole_rows;
  // A vector's whole may be a row for each part.
  const bool fits =
      is_matrix ? (view->rank >= 2 || rows == 1) && view->rows() == rows && view->cols() == cols
                : (is_part || view->rows() == 1) && view->num_elements() == cols;
  if (!fits) {
    const std::string wanted =
        is_matrix ? fmt::format("[{}, {}]", rows, cols) : fmt::format("[{}]", cols);
    return invalid(fmt::format("tensor {} is {}, but the model's numbers make it {}", name,
                               shape_text(*view), wanted));
  }
  DUNLIN_TRY(check_type(name, *view, is_matrix));
  return FoundTensor{name, is_part ? part_of(slot, *view) : *view,
                     source.interleaves_qk() ? slot.gguf_order : RowOrder{}, is_transposed};
}

std::vector<TensorSlot> tensor_slots(const ModelConfig& config, Weights& weights) {
  SlotList list(config);
  list.linear("token_embd", weights.token_embedding, config.vocab_size, config.hidden_size, false);
  if (config.learned_positions) {
    list.linear("position_embd", weights.position_embedding, config.context_length,
                config.hidden_size, false);
  }
  if (config.num_token_types > 0) {
    list.linear("token_types", weights.token_types, config.num_token_types, config.hidden_size,
                false);
  }
  const RopeConfig& rope = config.ropes[0];
  if (rope.factors == RopeFactors::kOne)
    list.vector("rope_freqs.weight", weights.rope_factors, rope.dims / 2);
  if (rope.factors == RopeFactors::kLongShort) {
    list.vector("rope_factors_long.weight", weights.rope_factors, rope.dims / 2);
    list.vector("rope_factors_short.weight", weights.rope_factors_short, rope.dims / 2);
  }
  weights.layers.resize(config.layers.size());
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    list.set_prefix(fmt::format("blk.{}.", i));
    add_attention(config, weights.layers[i], list);
    add_ffn(config, config.layers[i], weights.layers[i], list);
  }
  list.set_prefix("");
  if (config.norms_residual)
    add_residual_norms(config, weights, list);
  else
    list.norm("output_norm", weights.output_norm, config.hidden_size);
  if (!config.tied_head && !config.is_encoder) {
    list.linear("output", weights.head, config.vocab_size, config.hidden_size, false);
  }
  return list.take();
}

Outcome check_tensors(const ModelConfig& config, const WeightSource& source) {
  Weights weights;
  for (const TensorSlot& slot : tensor_slots(config, weights))
    DUNLIN_TRY(find_tensor(source, slot));
  return {};
}

Outcome check_checkpoint(const ModelConfig& config, const Checkpoint& checkpoint) {
  if (Outcome complete = check_tensors(config, checkpoint); !complete) {
    return tl::unexpected<Status>(
        checkpoint.in_own_words(complete.error().with_prefix(checkpoint.path())));
  }
  Weights weights;
  std::unordered_set<std::string> known;
  for (TensorSlot& slot : tensor_slots(config, weights)) {
    known.insert(checkpoint.find(slot.name) ? std::move(slot.name) : std::move(slot.whole));
  }
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    if (!known.contains(tensor.name)) {
      return tl::unexpected<Status>(checkpoint.in_own_words(Status(
          StatusCode::kUnimplemented,
          fmt::format("{}: tensor {} is not part of architecture {} as supported here",
                      checkpoint.path(), quote_for_message(tensor.name), config.architecture))));
    }
  }
  return {};
}

}  // namespace dunlin
