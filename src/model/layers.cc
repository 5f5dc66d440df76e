#include "model/layers.h"

#include <algorithm>
#include <array>

#include "kernels/activation.h"
#include "kernels/kv_write.h"
#include "kernels/norm.h"
#include "kernels/row_chunks.h"

namespace dunlin {
namespace {

GateFunction gate_function(Activation activation) {
  switch (activation) {
    case Activation::kSilu: return GateFunction::kSilu;
    case Activation::kGeluTanh: return GateFunction::kGeluTanh;
  }
  return GateFunction::kSilu;
}

void norm_heads(const Step& step, const std::vector<float>& weight, int num_heads, float* x) {
  if (weight.empty()) return;
  const int dim = step.config.head_dim;
  for (int head = 0; head < num_heads; ++head, x += dim) {
    rms_norm(step.isa, x, weight.data(), step.config.norm_eps, dim, x);
  }
}

// Norms and rotates the queries and keys of every token and stores its K and V.
void finish_qkv(Step& step, const LayerWeights& weights, int layer_idx, const PagedKvLayer& cache,
                std::span<const std::int64_t> slots) {
  const ModelConfig& c = step.config;
  const auto rope_idx =
      static_cast<std::size_t>(c.layers[static_cast<std::size_t>(layer_idx)].rope_idx);
  const RopeTable& rope = step.scratch.ropes[rope_idx];
  const int rope_dim = rope.frequencies.rope_dim();
  const std::int64_t stride = c.q_size() + 2 * c.kv_size();
  for_rows(step.pool, step.batch.num_tokens(), stride, [&](std::int64_t token) {
    float* q = step.scratch.qkv.as<float>() + token * stride;
    float* k = q + c.q_size();
    norm_heads(step, weights.q_norm, c.num_heads, q);
    norm_heads(step, weights.k_norm, c.num_kv_heads, k);
    // Keys lie behind the queries, so one call rotates both.
    const std::int64_t at = token * (rope_dim / 2);
    apply_rope(RopeStyle::kRotateHalf, rope.cos.as<float>() + at, rope.sin.as<float>() + at,
               rope_dim, c.num_heads + c.num_kv_heads, c.head_dim, q);
    kv_write(step.isa, cache, slots[static_cast<std::size_t>(token)], k, k + c.kv_size());
  });
}

}  // namespace

void attend(Step& step, const LayerWeights& weights, int layer_idx) {
  const ModelConfig& c = step.config;
  const ForwardBatch& batch = step.batch;
  const std::int64_t stride = c.q_size() + 2 * c.kv_size();
  float* q = step.scratch.qkv.as<float>();
  float* k = q + c.q_size();
  const std::array tasks = {
      GemmTask{&weights.q.matrix, weights.q.bias_data(), q, stride},
      GemmTask{&weights.k.matrix, weights.k.bias_data(), k, stride},
      GemmTask{&weights.v.matrix, weights.v.bias_data(), k + c.kv_size(), stride},
  };
  step.linear(tasks, batch.num_tokens());

  const PagedKvLayer cache = step.kv.layer(layer_idx);
  const KvLayerPlace& place = step.kv.layout().places[static_cast<std::size_t>(layer_idx)];
  const ForwardBatch::Group& group = batch.groups[static_cast<std::size_t>(place.group_idx)];
  finish_qkv(step, weights, layer_idx, cache, group.slot_mapping);
  if (batch.num_outputs() == 0 && layer_idx + 1 == c.num_layers()) return;

  AttentionParams params;
  params.num_heads = c.num_heads;
  params.scale = c.attention_scale;
  params.softcap = c.attention_softcap;
  params.causal = batch.causal;
  AttentionBatch queries;
  queries.q = q;
  queries.q_stride = stride;
  queries.positions = batch.positions;
  queries.query_start_loc = batch.query_start_loc;
  queries.seq_lens = batch.seq_lens;
  queries.block_tables = group.block_tables;
  queries.max_blocks_per_seq = group.max_blocks_per_seq;
  attention(step.pool, step.isa, params, queries, cache, step.scratch.attn_out.as<float>(),
            step.scratch.attention);
}

void project_attention(Step& step, const LayerWeights& weights, const ActiveRows& rows) {
  const ModelConfig& c = step.config;
  StepScratch& scratch = step.scratch;
  const auto source_row = [&](std::int64_t row) {
    return rows.all ? row : step.batch.logits_indices[static_cast<std::size_t>(row)];
  };
  scratch.acts.reset(c.q_size());
  for_rows(step.pool, rows.count, c.q_size(), [&](std::int64_t row) {
    scratch.acts.set_row(step.isa, row,
                         scratch.attn_out.as<float>() + source_row(row) * c.q_size());
  });
  if (!rows.all) {
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

void gated_mlp(Step& step, const LayerWeights& weights, const ActiveRows& rows) {
  const ModelConfig& c = step.config;
  StepScratch& scratch = step.scratch;
  const std::int64_t stride = 2 * std::int64_t{c.ffn_size};
  float* gate = scratch.gate_up.as<float>();
  float* up = gate + c.ffn_size;
  const std::array tasks = {
      GemmTask{&weights.gate.matrix, weights.gate.bias_data(), gate, stride},
      GemmTask{&weights.up.matrix, weights.up.bias_data(), up, stride},
  };
  step.linear(tasks, rows.count);
  gated_rows(step.pool, step.isa, gate_function(c.activation), gate, up, stride, c.ffn_size,
             rows.count, &scratch.acts);
  const GemmTask task{&weights.down.matrix, weights.down.bias_data(), scratch.delta.as<float>(),
                      c.hidden_size};
  step.linear({&task, 1}, rows.count);
}

}  // namespace dunlin
