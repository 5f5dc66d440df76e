#include "model/step.h"

#include <algorithm>
#include <numeric>

namespace dunlin {
namespace {

// With so few tokens the time of a linear layer is that of reading its weights.
constexpr std::int64_t kReadingRows = 4;

Buffer floats(std::int64_t rows, std::int64_t cols) {
  return Buffer(static_cast<std::size_t>(rows * cols) * sizeof(float));
}

void reserve_latent(const ModelConfig& c, std::int64_t max_tokens, bool keep_float,
                    LatentScratch& scratch) {
  const LatentAttention& latent = c.latent;
  const std::int64_t rows = max_tokens * c.num_heads;
  scratch.q_latent = floats(max_tokens, latent.q_rank);
  scratch.q = floats(rows, latent.query_dim());
  scratch.kv = floats(max_tokens, c.head_dim);
  scratch.absorbed = floats(rows, c.head_dim);
  scratch.mixed = floats(rows, latent.kv_rank);
  scratch.rows.reserve(rows, std::max(latent.nope_dim, latent.kv_rank), keep_float);
  scratch.row_numbers.resize(static_cast<std::size_t>(rows));
  std::iota(scratch.row_numbers.begin(), scratch.row_numbers.end(), 0);
  scratch.tasks.resize(static_cast<std::size_t>(c.num_heads));
}

}  // namespace

void StepScratch::reserve(const ModelConfig& c, const KvLayout& kv, int num_threads,
                          int max_tokens_of_step, int max_seqs, bool keep_float) {
  max_tokens = max_tokens_of_step;
  residual = floats(max_tokens, c.hidden_size);
  delta = floats(max_tokens, c.hidden_size);
  if (c.is_latent())
    reserve_latent(c, max_tokens, keep_float, latent);
  else
    qkv = floats(max_tokens, c.q_size() + 2 * c.kv_size());
  attn_out = floats(max_tokens, c.attn_out_size());
  const int ffn = std::max(c.ffn_size, c.moe.shared_ffn_size);
  gate_up = floats(max_tokens, 2 * std::int64_t{ffn});
  if (c.parallel) mlp_delta = floats(max_tokens, c.hidden_size);
  const std::int64_t widest = std::max({std::int64_t{c.hidden_size}, c.attn_out_size(),
                                        std::int64_t{ffn}, std::int64_t{c.latent.q_rank}});
  acts.reserve(max_tokens, widest, keep_float);
  for (RopeTable& rope : ropes) {
    rope.cos = floats(max_tokens, rope.frequencies.rope_dim() / 2);
    rope.sin = floats(max_tokens, rope.frequencies.rope_dim() / 2);
  }
  attention.reserve(num_threads, max_tokens, max_seqs, c.num_heads, kv.num_kv_heads, kv.head_dim_k,
                    kv.head_dim_v);
  moe.reserve(c.moe, c.hidden_size, max_tokens, keep_float);
}

std::span<const std::int64_t> Step::slots(int layer_idx) const {
  const KvLayerPlace& place = kv.layout().places[static_cast<std::size_t>(layer_idx)];
  return batch.groups[static_cast<std::size_t>(place.group_idx)].slot_mapping;
}

void Step::attention(int layer_idx, const float* q, std::int64_t q_stride, const float* sinks,
                     float* out) {
  const KvLayerPlace& place = kv.layout().places[static_cast<std::size_t>(layer_idx)];
  const ForwardBatch::Group& group = batch.groups[static_cast<std::size_t>(place.group_idx)];
  AttentionParams params;
  params.num_heads = config.num_heads;
  params.scale = config.attention_scale;
  params.softcap = config.attention_softcap;
  params.causal = batch.causal;
  params.sinks = sinks;
  AttentionBatch queries;
  queries.q = q;
  queries.q_stride = q_stride;
  queries.positions = batch.positions;
  queries.query_start_loc = batch.query_start_loc;
  queries.seq_lens = batch.seq_lens;
  queries.block_tables = group.block_tables;
  queries.max_blocks_per_seq = group.max_blocks_per_seq;
  dunlin::attention(pool, isa, params, queries, kv.layer(layer_idx), out, scratch.attention);
}

Norm Step::norm(const NormWeights& weights) const {
  if (weights.weight.empty()) return {};
  return {config.norm, weights.weight.data(), weights.bias.empty() ? nullptr : weights.bias.data(),
          config.norm_eps};
}

void Step::warm_next(std::int64_t num_rows) {
  num_linears = (num_linears + 1) % linear_order.size();
  const std::vector<GemmTask>& next = linear_order[num_linears];
  if (num_rows <= kReadingRows && !next.empty()) warm_gemm(pool, next, num_rows);
}

void Step::linear(std::span<const GemmTask> tasks, std::int64_t num_rows,
                  const std::int32_t* token_rows) {
  if (num_rows == 0) return;
  warm_next(num_rows);
  gemm(pool, isa, tasks, scratch.acts, num_rows, token_rows);
  for (const GemmTask& task : tasks) {
    weight_bytes += static_cast<std::uint64_t>(task.weights->size_bytes());
  }
}

void Step::grouped_linear(std::span<const GemmTask> tasks, const Activations& x,
                          std::int64_t num_rows) {
  if (num_rows == 0) return;
  warm_next(num_rows);
  weight_bytes += static_cast<std::uint64_t>(gemm_grouped(pool, isa, tasks, x));
}

}  // namespace dunlin
