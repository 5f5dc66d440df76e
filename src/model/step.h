// What the layers share while they compute one batch: the machine, the model's numbers, the batch
// and the scratch memory. One step's work passes through these arrays in turn:
//
//   residual -> (norm) acts -> qkv -> (attention) attn_out -> acts -> delta -> residual
//            -> (norm) acts -> gate_up -> acts -> delta -> residual
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpu/isa.h"
#include "cpu/thread_pool.h"
#include "kernels/attention.h"
#include "kernels/attention_votes.h"
#include "kernels/gemm.h"
#include "kernels/norm.h"
#include "kernels/page_selection.h"
#include "kernels/rope.h"
#include "kv/kv_compaction.h"
#include "kv/kv_storage.h"
#include "model/config.h"
#include "model/forward_batch.h"
#include "model/moe_scratch.h"
#include "model/weights.h"
#include "tensor/buffer.h"

namespace dunlin {

// Cosines and sines of a step's positions for one of the model's RopeConfigs.
struct RopeTable {
  RopeFrequencies frequencies;
  Buffer cos, sin;            // [max_tokens, dims / 2] floats
  Buffer sink_cos, sink_sin;  // the same of ForwardBatch::Kept::sink_positions
};

// Of latent attention (latent_attention.h). Rows of one head adjoin in `rows`.
struct LatentScratch {
  Buffer q_latent;   // [max_tokens, q_rank]
  Buffer q;          // [max_tokens, num_heads, query_dim]
  Buffer kv;         // [max_tokens, kv_rank + rope_dim]
  Buffer absorbed;   // [max_tokens, num_heads, kv_rank + rope_dim] queries of the cached keys
  Buffer mixed;      // [max_tokens, num_heads, kv_rank] latents, weighted
  Activations rows;  // [num_heads * max_tokens] inputs of the heads' own matrices
  std::vector<std::int32_t> row_numbers;  // [num_heads * max_tokens] 0, 1, ...
  std::vector<GemmTask> tasks;            // [num_heads]
};

struct StepScratch {
  void reserve(const ModelConfig& config, const KvLayout& kv, int num_threads, int max_tokens,
               int max_seqs, bool keep_float);
  // What reserve() takes.
  static std::int64_t reserved_bytes(const ModelConfig& config, const KvLayout& kv, int num_threads,
                                     std::int64_t max_tokens, bool keep_float);

  int max_tokens = 0;
  Buffer residual;               // [max_tokens, hidden_size]
  Buffer delta;                  // [max_tokens, hidden_size] what a block adds to the residual
  Buffer qkv;                    // [max_tokens, q_size + 2 kv_size]; latent attention has its own
  Buffer sink_q;                 // [max_tokens, q_size] queries of the sinks, rotated for them
  Buffer attn_out;               // [max_tokens, attn_out_size]
  Buffer gate_up;                // [max_tokens, 2 ffn_size], of the MLP or the shared expert
  Buffer mlp_delta;              // [max_tokens, hidden_size] in models with parallel blocks
  Activations acts;              // input of the next linear layers
  std::vector<RopeTable> ropes;  // as ModelConfig::ropes; frequencies are set by the decoder
  AttentionScratch attention;
  PageSelection selection;
  Buffer softmax;                                // [max_tokens, num_heads] SoftmaxState
  std::vector<VotingSequence> voters;            // [max_seqs]
  std::vector<KvCompactionScratch> compactions;  // [num_threads]
  LatentScratch latent;
  MoeScratch moe;
};

// Whose positions: the token's own, or ForwardBatch::Kept::sink_positions.
enum class Positions { kOwn, kOfSinks };

// The matrices of a phase of linear layers: what they read, in the order in which a step runs them.
// Empty for a phase that takes matrices by its tokens.
using LinearOrder = std::vector<std::vector<GemmTask>>;

struct Step {
  ThreadPool& pool;
  Isa isa;
  const ModelConfig& config;
  const ForwardBatch& batch;
  KvStorage& kv;
  StepScratch& scratch;
  const LinearOrder& linear_order;
  std::span<const std::int32_t> active_tokens;  // that the last layer computes, ascending
  std::size_t num_linears = 0;                  // run so far
  std::uint64_t weight_bytes = 0;               // read by the linear layers so far

  // gemm over rows 0..num_rows of scratch.acts; counts the weights it reads. Workers that wait
  // bring the weights of the next call closer.
  // token_rows: null, or [num_rows] which rows of acts.
  void linear(std::span<const GemmTask> tasks, std::int64_t num_rows,
              const std::int32_t* token_rows = nullptr);
  // gemm_grouped over rows of `x`, in the same way. num_rows: tokens, of which each has some rows.
  void grouped_linear(std::span<const GemmTask> tasks, const Activations& x, std::int64_t num_rows);
  // Whether the layer is the last one and nothing is wanted of it but keys and values.
  bool ends_at(int layer_idx) const {
    return active_tokens.empty() && batch.voters.empty() && layer_idx + 1 == config.num_layers();
  }
  // Layers whose queries read all pages (ForwardBatch::page_budgets): which ones matter shows only
  // behind the first two.
  static constexpr int kDenseLayers = 2;
  // Whether the token's query of the layer misses some tokens, and so has another one for sinks.
  bool has_sink_q(int layer_idx, std::int64_t token) const {
    return !batch.kept.is_empty() && batch.kept.first[static_cast<std::size_t>(token)] > 0 &&
           config.layers[static_cast<std::size_t>(layer_idx)].window == 0;
  }
  // Rotates num_heads heads, `stride` floats apart, of which x is the first, by the token's
  // position or by the one that sinks see it at. Nothing in layers without RoPE.
  void rotate(int layer_idx, std::int64_t token, Positions positions, int num_heads, int stride,
              float* x) const;
  // What a token of the batch is in the cache of a layer.
  std::span<const std::int64_t> slots(int layer_idx) const;
  // Attention of the batch over the layer's cache: out [num_tokens, num_heads, head_dim_v].
  // sinks [num_heads] or null.
  void attention(int layer_idx, const float* q, std::int64_t q_stride, const float* sinks,
                 float* out);
  // The model's kind of norm with these weights; none where there are none.
  Norm norm(const NormWeights& weights) const;

 private:
  void vote(int layer_idx, const AttentionParams& params, const AttentionBatch& queries,
            const PagedKvLayer& layer);
  void warm_next(std::int64_t num_rows);
};

}  // namespace dunlin
