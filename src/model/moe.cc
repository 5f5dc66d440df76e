#include "model/moe.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/activation.h"
#include "kernels/row_chunks.h"
#include "kernels/scratch_sizes.h"
#include "model/routing.h"

namespace dunlin {

std::int64_t MoeScratch::reserved_bytes(const MoeConfig& c, int hidden_size,
                                        std::int64_t max_tokens, bool keep_float) {
  if (c.num_experts == 0) return 0;
  const std::int64_t pairs = max_tokens * c.experts_per_token;
  const std::int64_t words = max_tokens * (c.num_experts + 1) + 5 * pairs + c.num_experts + 1 +
                             pairs * (2 * std::int64_t{c.ffn_size} + hidden_size);
  return words * 4 + (2 * std::int64_t{c.num_experts} + 2) * std::int64_t{sizeof(GemmTask)} +
         activations_bytes(pairs, c.ffn_size, keep_float);
}

void MoeScratch::reserve(const MoeConfig& c, int hidden_size, std::int64_t max_tokens,
                         bool keep_float) {
  if (c.num_experts == 0) return;
  const auto tokens = static_cast<std::size_t>(max_tokens);
  const auto pairs = tokens * static_cast<std::size_t>(c.experts_per_token);
  const auto floats = [&](int cols) {
    return Buffer(pairs * static_cast<std::size_t>(cols) * sizeof(float));
  };
  router_logits.resize(tokens * static_cast<std::size_t>(c.num_experts));
  shared_gate.resize(tokens);
  chosen.resize(pairs);
  weights.resize(pairs);
  pair_of.resize(pairs);
  token_of.resize(pairs);
  rows.resize(pairs);
  std::iota(rows.begin(), rows.end(), 0);
  first_pair.resize(static_cast<std::size_t>(c.num_experts) + 1);
  tasks.reserve(2 * static_cast<std::size_t>(c.num_experts) + 2);
  gate_up = floats(2 * c.ffn_size);
  acts.reserve(static_cast<std::int64_t>(pairs), c.ffn_size, keep_float);
  out = floats(hidden_size);
}

namespace {

void route_tokens(Step& step, const MoeWeights& weights, std::int64_t num_tokens) {
  const MoeConfig& c = step.config.moe;
  MoeScratch& scratch = step.scratch.moe;
  const GemmTask tasks[] = {
      {&weights.router.matrix, weights.router.bias_data(), scratch.router_logits.data(),
       c.num_experts},
      {&weights.shared_gate.matrix, nullptr, scratch.shared_gate.data(), 1},
  };
  step.linear(std::span(tasks).first(c.shared_gate ? 2 : 1), num_tokens);
  const float* bias = c.correction_bias ? weights.correction_bias.data() : nullptr;
  for_rows(step.pool, num_tokens, std::int64_t{4} * c.num_experts * c.experts_per_token,
           [&](std::int64_t token) {
             const std::int64_t at = token * c.experts_per_token;
             route(c, bias, scratch.router_logits.data() + token * c.num_experts,
                   scratch.chosen.data() + at, scratch.weights.data() + at);
           });
}

// Counts, then places: stable, so an expert's tokens ascend.
void sort_pairs(const MoeConfig& c, std::int64_t num_tokens, MoeScratch& scratch) {
  const auto k = static_cast<std::size_t>(c.experts_per_token);
  const std::size_t num_pairs = static_cast<std::size_t>(num_tokens) * k;
  std::vector<std::int32_t>& first = scratch.first_pair;
  std::fill(first.begin(), first.end(), 0);
  const auto expert_of = [&](std::size_t i) { return static_cast<std::size_t>(scratch.chosen[i]); };
  for (std::size_t i = 0; i < num_pairs; ++i) ++first[expert_of(i) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  for (std::size_t i = 0; i < num_pairs; ++i) {
    const std::int32_t place = first[expert_of(i)]++;
    scratch.pair_of[i] = place;
    scratch.token_of[static_cast<std::size_t>(place)] = static_cast<std::int32_t>(i / k);
  }
  // Each begin has moved to the next one's.
  std::copy_backward(first.begin(), first.end() - 1, first.end());
  first[0] = 0;
}

// Adds a task for each expert that has pairs: `matrix` of it, over its part of `rows`, into its
// rows of y.
void add_tasks(const MoeWeights& weights, LinearWeights MlpWeights::* matrix,
               const std::vector<std::int32_t>& rows, float* y, std::int64_t y_stride,
               MoeScratch& scratch) {
  for (std::size_t e = 0; e < weights.experts.size(); ++e) {
    const std::int32_t begin = scratch.first_pair[e], end = scratch.first_pair[e + 1];
    if (begin == end) continue;
    const LinearWeights& linear = weights.experts[e].*matrix;
    GemmTask& task = scratch.tasks.emplace_back();
    task.weights = &linear.matrix;
    task.bias = linear.bias_data();
    task.y = y + begin * y_stride;
    task.y_stride = y_stride;
    task.num_tokens = end - begin;
    task.token_rows = rows.data() + begin;
  }
}

// Gate and up of the chosen experts and of the shared one, which takes every token.
void widen(Step& step, const MoeWeights& weights, std::int64_t num_tokens) {
  const MoeConfig& c = step.config.moe;
  MoeScratch& scratch = step.scratch.moe;
  scratch.tasks.clear();
  const std::int64_t stride = 2 * std::int64_t{c.ffn_size};
  float* gate = scratch.gate_up.as<float>();
  add_tasks(weights, &MlpWeights::gate, scratch.token_of, gate, stride, scratch);
  add_tasks(weights, &MlpWeights::up, scratch.token_of, gate + c.ffn_size, stride, scratch);
  if (c.shared_ffn_size > 0) {
    float* shared = step.scratch.gate_up.as<float>();
    const std::int64_t shared_stride = 2 * std::int64_t{c.shared_ffn_size};
    for (const LinearWeights* linear : {&weights.shared.gate, &weights.shared.up}) {
      GemmTask& task = scratch.tasks.emplace_back();
      task = {&linear->matrix, nullptr, shared, shared_stride};
      task.num_tokens = num_tokens;
      shared += c.shared_ffn_size;
    }
  }
  step.grouped_linear(scratch.tasks, step.scratch.acts, num_tokens);
}

// The shared expert's output into delta.
void finish_shared(Step& step, const MoeWeights& weights, std::int64_t num_tokens) {
  const int ffn = step.config.moe.shared_ffn_size;
  float* gate = step.scratch.gate_up.as<float>();
  gated_rows(step.pool, step.isa, gate_function(step.config.activation), gate, gate + ffn,
             2 * std::int64_t{ffn}, ffn, num_tokens, &step.scratch.acts);
  const GemmTask task{&weights.shared.down.matrix, nullptr, step.scratch.delta.as<float>(),
                      step.config.hidden_size};
  step.linear({&task, 1}, num_tokens);
}

void finish_experts(Step& step, const MoeWeights& weights, std::int64_t num_tokens) {
  const MoeConfig& c = step.config.moe;
  MoeScratch& scratch = step.scratch.moe;
  float* gate = scratch.gate_up.as<float>();
  gated_rows(step.pool, step.isa, gate_function(step.config.activation), gate, gate + c.ffn_size,
             2 * std::int64_t{c.ffn_size}, c.ffn_size, num_tokens * c.experts_per_token,
             &scratch.acts);
  scratch.tasks.clear();
  add_tasks(weights, &MlpWeights::down, scratch.rows, scratch.out.as<float>(),
            step.config.hidden_size, scratch);
  step.grouped_linear(scratch.tasks, scratch.acts, num_tokens);
}

void sum_up(Step& step, std::int64_t num_tokens) {
  const MoeConfig& c = step.config.moe;
  const MoeScratch& scratch = step.scratch.moe;
  const std::int64_t n = step.config.hidden_size;
  for_rows(step.pool, num_tokens, n * (c.experts_per_token + 1), [&](std::int64_t token) {
    float* delta = step.scratch.delta.as<float>() + token * n;
    if (c.shared_ffn_size == 0) std::fill_n(delta, n, 0.0f);
    if (c.shared_gate) {
      const float gate = scratch.shared_gate[static_cast<std::size_t>(token)];
      const float share = 1.0f / (1.0f + std::exp(-gate));
      for (std::int64_t i = 0; i < n; ++i) delta[i] *= share;
    }
    for (std::int64_t i = token * c.experts_per_token; i < (token + 1) * c.experts_per_token; ++i) {
      const auto pair = static_cast<std::size_t>(i);
      add_scaled(scratch.weights[pair], scratch.out.as<float>() + scratch.pair_of[pair] * n, n,
                 delta);
    }
  });
}

}  // namespace

void mix_experts(Step& step, const MoeWeights& weights, const ActiveRows& rows) {
  route_tokens(step, weights, rows.count);
  sort_pairs(step.config.moe, rows.count, step.scratch.moe);
  widen(step, weights, rows.count);
  if (step.config.moe.shared_ffn_size > 0) finish_shared(step, weights, rows.count);
  finish_experts(step, weights, rows.count);
  sum_up(step, rows.count);
}

}  // namespace dunlin
