#include "model/layers.h"

#include <algorithm>
#include <array>

#include "kernels/activation.h"
#include "kernels/kv_write.h"
#include "kernels/norm.h"
#include "kernels/row_chunks.h"

namespace dunlin {

GateFunction gate_function(Activation activation) {
  switch (activation) {
    case Activation::kSilu: return GateFunction::kSilu;
    case Activation::kGeluTanh: return GateFunction::kGeluTanh;
    case Activation::kGeluErf: return GateFunction::kGeluErf;
    case Activation::kClampedSwiglu: return GateFunction::kClampedSwiglu;
  }
  return GateFunction::kSilu;
}

namespace {

// Norms the heads of one token's queries or keys, each by itself or all together.
void norm_heads(const Step& step, const NormWeights& weights, int num_heads, float* x) {
  if (weights.weight.empty()) return;
  const ModelConfig& c = step.config;
  const Norm norm{NormType::kRms, weights.weight.data(), nullptr, c.norm_eps};
  if (c.qk_norm == QkNorm::kWhole) {
    normalize(step.isa, norm, x, std::int64_t{num_heads} * c.head_dim, x);
    return;
  }
  for (int head = 0; head < num_heads; ++head, x += c.head_dim)
    normalize(step.isa, norm, x, c.head_dim, x);
}

// Norms and rotates the queries and keys of every token and stores its K and V.
void finish_qkv(Step& step, const LayerWeights& weights, int layer_idx) {
  const ModelConfig& c = step.config;
  const PagedKvLayer cache = step.kv.layer(layer_idx);
  const std::span<const std::int64_t> slots = step.slots(layer_idx);
  const std::int64_t stride = c.q_size() + 2 * c.kv_size();
  for_rows(step.pool, step.batch.num_tokens(), stride, [&](std::int64_t token) {
    float* q = step.scratch.qkv.as<float>() + token * stride;
    float* k = q + c.q_size();
    norm_heads(step, weights.q_norm, c.num_heads, q);
    norm_heads(step, weights.k_norm, c.num_kv_heads, k);
    if (step.has_sink_q(layer_idx, token)) {
      float* sink_q = step.scratch.sink_q.as<float>() + token * c.q_size();
      std::copy_n(q, c.q_size(), sink_q);
      step.rotate(layer_idx, token, Positions::kOfSinks, c.num_heads, c.head_dim, sink_q);
    }
    // Keys lie behind the queries, so one call rotates both.
    step.rotate(layer_idx, token, Positions::kOwn, c.num_heads + c.num_kv_heads, c.head_dim, q);
    for (std::size_t i = 0; i < weights.common_keys.size(); ++i) k[i] -= weights.common_keys[i];
    kv_write(step.isa, cache, slots[static_cast<std::size_t>(token)], k, k + c.kv_size());
  });
}

}  // namespace

void attend(Step& step, const LayerWeights& weights, int layer_idx) {
  const ModelConfig& c = step.config;
  const std::int64_t stride = c.q_size() + 2 * c.kv_size();
  float* q = step.scratch.qkv.as<float>();
  float* k = q + c.q_size();
  const std::array tasks = {
      GemmTask{&weights.q.matrix, weights.q.bias_data(), q, stride},
      GemmTask{&weights.k.matrix, weights.k.bias_data(), k, stride},
      GemmTask{&weights.v.matrix, weights.v.bias_data(), k + c.kv_size(), stride},
  };
  step.linear(tasks, step.batch.num_tokens());

  finish_qkv(step, weights, layer_idx);
  if (step.ends_at(layer_idx)) return;
  const float* sinks = c.attention_sinks ? weights.sinks.data() : nullptr;
  step.attention(layer_idx, q, stride, sinks, step.scratch.attn_out.as<float>());
}

void project_attention(Step& step, const LayerWeights& weights, const ActiveRows& rows) {
  const ModelConfig& c = step.config;
  StepScratch& scratch = step.scratch;
  const auto source_row = [&](std::int64_t row) {
    return rows.tokens == nullptr ? row : rows.tokens[row];
  };
  scratch.acts.reset(c.attn_out_size());
  for_rows(step.pool, rows.count, c.attn_out_size(), [&](std::int64_t row) {
    scratch.acts.set_row(step.isa, row,
                         scratch.attn_out.as<float>() + source_row(row) * c.attn_out_size());
  });
  if (rows.tokens != nullptr) {
    // Indices ascend, so a row is never overwritten before it has been moved.
    float* residual = scratch.residual.as<float>();
    for (std::int64_t row = 0; row < rows.count; ++row) {
      if (source_row(row) == row) continue;
      std::copy_n(residual + source_row(row) * c.hidden_size, c.hidden_size,
                  residual + row * c.hidden_size);
    }
  }
  const GemmTask task{&weights.o.matrix, weights.o.bias_data(), scratch.delta.as<float>(),
                      c.hidden_size};
  step.linear({&task, 1}, rows.count);
}

namespace {

// The MLP of rows of acts (token_rows: null, or which) into `delta`.
void run_mlp(Step& step, const LayerWeights& weights, std::int64_t num_rows,
             const std::int32_t* token_rows, float* delta) {
  const ModelConfig& c = step.config;
  StepScratch& scratch = step.scratch;
  const std::int64_t stride = 2 * std::int64_t{c.ffn_size};
  float* gate = scratch.gate_up.as<float>();
  float* up = gate + c.ffn_size;
  const std::array tasks = {
      GemmTask{&weights.mlp.gate.matrix, weights.mlp.gate.bias_data(), gate, stride},
      GemmTask{&weights.mlp.up.matrix, weights.mlp.up.bias_data(), up, stride},
  };
  step.linear(std::span(tasks).subspan(c.gated_mlp ? 0 : 1), num_rows, token_rows);
  gated_rows(step.pool, step.isa, gate_function(c.activation), c.gated_mlp ? gate : up,
             c.gated_mlp ? up : nullptr, stride, c.ffn_size, num_rows, &scratch.acts);
  const GemmTask task{&weights.mlp.down.matrix, weights.mlp.down.bias_data(), delta, c.hidden_size};
  step.linear({&task, 1}, num_rows);
}

}  // namespace

void mlp(Step& step, const LayerWeights& weights, const ActiveRows& rows) {
  run_mlp(step, weights, rows.count, nullptr, step.scratch.delta.as<float>());
}

void parallel_mlp(Step& step, const LayerWeights& weights, const ActiveRows& rows) {
  float* mlp_delta = step.scratch.mlp_delta.as<float>();
  run_mlp(step, weights, rows.count, rows.tokens, mlp_delta);
  project_attention(step, weights, rows);
  const std::int64_t n = step.config.hidden_size;
  for_rows(step.pool, rows.count, n, [&](std::int64_t row) {
    add(mlp_delta + row * n, n, step.scratch.delta.as<float>() + row * n);
  });
}

}  // namespace dunlin
