#include "model/latent_attention.h"

#include <algorithm>
#include <array>

#include "kernels/kv_write.h"
#include "kernels/norm.h"
#include "kernels/row_chunks.h"

namespace dunlin {
namespace {

Norm rms(const Step& step, const NormWeights& weights) {
  return {NormType::kRms, weights.weight.data(), nullptr, step.config.norm_eps};
}

// The queries of all heads, and the latent with the key that all heads share.
void project(Step& step, const LayerWeights& layer) {
  const LatentAttention& latent = step.config.latent;
  const LatentWeights& weights = layer.latent;
  LatentScratch& scratch = step.scratch.latent;
  const std::int64_t num_tokens = step.batch.num_tokens();
  const std::int64_t q_size = std::int64_t{step.config.num_heads} * latent.query_dim();
  const GemmTask kv{&weights.kv_a.matrix, nullptr, scratch.kv.as<float>(), step.config.head_dim};
  if (latent.q_rank == 0) {
    const std::array tasks = {GemmTask{&layer.q.matrix, nullptr, scratch.q.as<float>(), q_size},
                              kv};
    step.linear(tasks, num_tokens);
    return;
  }
  float* low = scratch.q_latent.as<float>();
  const std::array tasks = {GemmTask{&weights.q_a.matrix, nullptr, low, latent.q_rank}, kv};
  step.linear(tasks, num_tokens);
  Activations& acts = step.scratch.acts;
  acts.reset(latent.q_rank);
  for_rows(step.pool, num_tokens, latent.q_rank, [&](std::int64_t token) {
    float* x = low + token * latent.q_rank;
    normalize(step.isa, rms(step, weights.q_a_norm), x, latent.q_rank, x);
    acts.set_row(step.isa, token, x);
  });
  const GemmTask task{&weights.q_b.matrix, nullptr, scratch.q.as<float>(), q_size};
  step.linear({&task, 1}, num_tokens);
}

// Norms the latent, rotates, stores the token, and puts each head's query where it is needed: the
// rotated part behind the room for the absorbed one, the rest into the rows of k_b.
void finish_token(Step& step, const LayerWeights& layer, int layer_idx, const PagedKvLayer& cache,
                  std::int64_t token) {
  const ModelConfig& c = step.config;
  const LatentAttention& latent = c.latent;
  LatentScratch& scratch = step.scratch.latent;
  float* kv = scratch.kv.as<float>() + token * c.head_dim;
  normalize(step.isa, rms(step, layer.latent.kv_a_norm), kv, latent.kv_rank, kv);
  step.rotate(layer_idx, token, Positions::kOwn, 1, c.head_dim, kv + latent.kv_rank);
  kv_write(step.isa, cache, step.slots(layer_idx)[static_cast<std::size_t>(token)], kv, nullptr);

  float* q = scratch.q.as<float>() + token * c.num_heads * latent.query_dim();
  float* absorbed = scratch.absorbed.as<float>() + token * c.q_size();
  if (step.has_sink_q(layer_idx, token)) {
    float* sink_q = step.scratch.sink_q.as<float>() + token * c.q_size() + latent.kv_rank;
    for (std::int64_t h = 0; h < c.num_heads; ++h)
      std::copy_n(q + h * latent.query_dim() + latent.nope_dim, latent.rope_dim,
                  sink_q + h * c.head_dim);
    step.rotate(layer_idx, token, Positions::kOfSinks, c.num_heads, c.head_dim, sink_q);
  }
  step.rotate(layer_idx, token, Positions::kOwn, c.num_heads, latent.query_dim(),
              q + latent.nope_dim);
  for (std::int64_t h = 0; h < c.num_heads; ++h, q += latent.query_dim(), absorbed += c.head_dim) {
    std::copy_n(q + latent.nope_dim, latent.rope_dim, absorbed + latent.kv_rank);
    scratch.rows.set_row(step.isa, h * step.batch.num_tokens() + token, q);
  }
}

// Each head's matrix times the head's rows: y [num_tokens, num_heads, y_dim], of which the matrix
// makes the first elements.
void multiply_heads(Step& step, const std::vector<LinearWeights>& heads, float* y,
                    std::int64_t y_dim) {
  LatentScratch& scratch = step.scratch.latent;
  const std::int64_t num_tokens = step.batch.num_tokens();
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const auto at = static_cast<std::int64_t>(h);
    GemmTask& task = scratch.tasks[h];
    task = {.weights = &heads[h].matrix};
    task.y = y + at * y_dim;
    task.y_stride = step.config.num_heads * y_dim;
    task.num_tokens = num_tokens;
    task.token_rows = scratch.row_numbers.data() + at * num_tokens;
  }
  step.grouped_linear(scratch.tasks, scratch.rows, num_tokens);
}

// Queries of sinks differ from the others in their rotated parts only.
void copy_absorbed(Step& step, int layer_idx) {
  const ModelConfig& c = step.config;
  if (step.batch.kept.is_empty()) return;
  for_rows(step.pool, step.batch.num_tokens(), c.q_size(), [&](std::int64_t token) {
    if (!step.has_sink_q(layer_idx, token)) return;
    for (std::int64_t h = 0; h < c.num_heads; ++h) {
      const std::int64_t at = token * c.q_size() + h * c.head_dim;
      std::copy_n(step.scratch.latent.absorbed.as<float>() + at, c.latent.kv_rank,
                  step.scratch.sink_q.as<float>() + at);
    }
  });
}

}  // namespace

void attend_latent(Step& step, const LayerWeights& layer, int layer_idx) {
  const ModelConfig& c = step.config;
  const LatentAttention& latent = c.latent;
  LatentScratch& scratch = step.scratch.latent;
  const std::int64_t num_tokens = step.batch.num_tokens();
  project(step, layer);

  const PagedKvLayer cache = step.kv.layer(layer_idx);
  scratch.rows.reset(latent.nope_dim);
  for_rows(step.pool, num_tokens, std::int64_t{c.num_heads} * latent.query_dim(),
           [&](std::int64_t token) { finish_token(step, layer, layer_idx, cache, token); });
  if (step.ends_at(layer_idx)) return;
  multiply_heads(step, layer.latent.k_b, scratch.absorbed.as<float>(), c.head_dim);
  copy_absorbed(step, layer_idx);

  float* mixed = scratch.mixed.as<float>();
  step.attention(layer_idx, scratch.absorbed.as<float>(), c.q_size(), nullptr, mixed);
  scratch.rows.reset(latent.kv_rank);
  for_rows(step.pool, num_tokens * c.num_heads, latent.kv_rank, [&](std::int64_t i) {
    const std::int64_t token = i / c.num_heads, h = i % c.num_heads;
    scratch.rows.set_row(step.isa, h * num_tokens + token, mixed + i * latent.kv_rank);
  });
  multiply_heads(step, layer.latent.v_b, step.scratch.attn_out.as<float>(), latent.value_dim);
}

}  // namespace dunlin
