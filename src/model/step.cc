#include "model/step.h"

#include <algorithm>

namespace dunlin {
namespace {

// With so few tokens the time of a linear layer is that of reading its weights.
constexpr std::int64_t kReadingRows = 4;

Buffer floats(std::int64_t rows, std::int64_t cols) {
  return Buffer(static_cast<std::size_t>(rows * cols) * sizeof(float));
}

}  // namespace

void StepScratch::reserve(const ModelConfig& c, int num_threads, int max_tokens_of_step,
                          int max_seqs, bool keep_float) {
  max_tokens = max_tokens_of_step;
  residual = floats(max_tokens, c.hidden_size);
  delta = floats(max_tokens, c.hidden_size);
  qkv = floats(max_tokens, c.q_size() + 2 * c.kv_size());
  attn_out = floats(max_tokens, c.q_size());
  gate_up = floats(max_tokens, 2 * std::int64_t{c.ffn_size});
  if (c.parallel) mlp_delta = floats(max_tokens, c.hidden_size);
  const std::int64_t widest =
      std::max({std::int64_t{c.hidden_size}, c.q_size(), std::int64_t{c.ffn_size}});
  acts.reserve(max_tokens, widest, keep_float);
  for (RopeTable& rope : ropes) {
    rope.cos = floats(max_tokens, rope.frequencies.rope_dim() / 2);
    rope.sin = floats(max_tokens, rope.frequencies.rope_dim() / 2);
  }
  attention.reserve(num_threads, max_tokens, max_seqs, c.num_heads, c.num_kv_heads, c.head_dim,
                    c.head_dim);
}

Norm Step::norm(const NormWeights& weights) const {
  if (weights.weight.empty()) return {};
  return {config.norm, weights.weight.data(), weights.bias.empty() ? nullptr : weights.bias.data(),
          config.norm_eps};
}

void Step::linear(std::span<const GemmTask> tasks, std::int64_t num_rows,
                  const std::int32_t* token_rows) {
  if (num_rows == 0) return;
  num_linears = (num_linears + 1) % linear_order.size();
  if (num_rows <= kReadingRows) warm_gemm(pool, linear_order[num_linears], num_rows);
  gemm(pool, isa, tasks, scratch.acts, num_rows, token_rows);
  for (const GemmTask& task : tasks) {
    weight_bytes += static_cast<std::uint64_t>(task.weights->size_bytes());
  }
}

}  // namespace dunlin
