#include "model/step.h"

#include <algorithm>
#include <numeric>

#include "kernels/scratch_sizes.h"

namespace dunlin {
namespace {

// With so few tokens the time of a linear layer is that of reading its weights.
constexpr std::int64_t kReadingRows = 4;

constexpr std::int64_t kFloat = sizeof(float);

// A buffer of the scratch and its shape.
struct SizedBuffer {
  Buffer* buffer;
  std::int64_t rows, cols;
};

// All plain buffers of floats, for steps of n tokens.
std::vector<SizedBuffer> buffers_of(const ModelConfig& c, std::int64_t n, StepScratch& scratch) {
  const std::int64_t ffn = std::max(c.ffn_size, c.moe.shared_ffn_size);
  std::vector<SizedBuffer> all = {
      {&scratch.residual, n, c.hidden_size},
      {&scratch.delta, n, c.hidden_size},
      {&scratch.attn_out, n, c.attn_out_size()},
      {&scratch.gate_up, n, 2 * ffn},
  };
  constexpr std::int64_t kStateFloats = sizeof(SoftmaxState) / sizeof(float);
  if (!c.is_encoder) all.push_back({&scratch.sink_q, n, c.q_size()});
  if (!c.is_encoder) all.push_back({&scratch.softmax, n, kStateFloats * c.num_heads});
  if (c.parallel) all.push_back({&scratch.mlp_delta, n, c.hidden_size});
  if (!c.is_latent()) {
    all.push_back({&scratch.qkv, n, c.q_size() + 2 * c.kv_size()});
    return all;
  }
  const LatentAttention& latent = c.latent;
  const std::int64_t rows = n * c.num_heads;
  all.insert(all.end(), {
                            {&scratch.latent.q_latent, n, latent.q_rank},
                            {&scratch.latent.q, rows, latent.query_dim()},
                            {&scratch.latent.kv, n, c.head_dim},
                            {&scratch.latent.absorbed, rows, c.head_dim},
                            {&scratch.latent.mixed, rows, latent.kv_rank},
                        });
  return all;
}

// The widest input of a linear layer.
std::int64_t widest_input(const ModelConfig& c) {
  return std::max({std::int64_t{c.hidden_size}, c.attn_out_size(), std::int64_t{c.ffn_size},
                   std::int64_t{c.moe.shared_ffn_size}, std::int64_t{c.latent.q_rank}});
}

// And of the heads' own matrices, with latent attention.
std::int64_t widest_head(const LatentAttention& latent) {
  return std::max(latent.nope_dim, latent.kv_rank);
}

}  // namespace

std::int64_t StepScratch::reserved_bytes(const ModelConfig& c, const KvLayout& kv, int num_threads,
                                         std::int64_t max_tokens, bool keep_float) {
  StepScratch none;
  std::int64_t bytes = 0;
  for (const SizedBuffer& sized : buffers_of(c, max_tokens, none))
    bytes += sized.rows * sized.cols * kFloat;
  for (const RopeConfig& rope : c.ropes) bytes += 2 * max_tokens * rope.dims * kFloat;
  bytes += activations_bytes(max_tokens, widest_input(c), keep_float);
  if (c.is_latent()) {
    const std::int64_t rows = max_tokens * c.num_heads;
    bytes += activations_bytes(rows, widest_head(c.latent), keep_float) +
             rows * std::int64_t{sizeof(std::int32_t)} +
             c.num_heads * std::int64_t{sizeof(GemmTask)};
  }
  return bytes +
         attention_scratch_bytes(num_threads, max_tokens, c.num_heads, kv.num_kv_heads,
                                 kv.head_dim_k, kv.head_dim_v) +
         MoeScratch::reserved_bytes(c.moe, c.hidden_size, max_tokens, keep_float);
}

void StepScratch::reserve(const ModelConfig& c, const KvLayout& kv, int num_threads,
                          int max_tokens_of_step, int max_seqs, bool keep_float) {
  const auto floats = [](std::int64_t rows, std::int64_t cols) {
    return Buffer(static_cast<std::size_t>(rows * cols * kFloat));
  };
  max_tokens = max_tokens_of_step;
  for (const SizedBuffer& sized : buffers_of(c, max_tokens, *this))
    *sized.buffer = floats(sized.rows, sized.cols);
  for (RopeTable& rope : ropes) {
    for (Buffer* table : {&rope.cos, &rope.sin, &rope.sink_cos, &rope.sink_sin})
      *table = floats(max_tokens, rope.frequencies.rope_dim() / 2);
  }
  acts.reserve(max_tokens, widest_input(c), keep_float);
  if (c.is_latent()) {
    const std::int64_t rows = std::int64_t{max_tokens} * c.num_heads;
    latent.rows.reserve(rows, widest_head(c.latent), keep_float);
    latent.row_numbers.resize(static_cast<std::size_t>(rows));
    std::iota(latent.row_numbers.begin(), latent.row_numbers.end(), 0);
    latent.tasks.resize(static_cast<std::size_t>(c.num_heads));
  }
  attention.reserve(num_threads, max_tokens, max_seqs, c.num_heads, kv.num_kv_heads, kv.head_dim_k,
                    kv.head_dim_v);
  selection.reserve(num_threads, max_tokens, kv.num_kv_heads, kv.head_dim_k, c.num_heads);
  voters.reserve(static_cast<std::size_t>(max_seqs));
  compactions.resize(static_cast<std::size_t>(num_threads));
  moe.reserve(c.moe, c.hidden_size, max_tokens, keep_float);
}

void Step::rotate(int layer_idx, std::int64_t token, Positions positions, int num_heads, int stride,
                  float* x) const {
  const int rope_idx = config.layers[static_cast<std::size_t>(layer_idx)].rope_idx;
  if (rope_idx == kNoRope) return;
  const RopeTable& rope = scratch.ropes[static_cast<std::size_t>(rope_idx)];
  const bool is_own = positions == Positions::kOwn;
  const int dims = rope.frequencies.rope_dim();
  const std::int64_t at = token * (dims / 2);
  apply_rope(config.ropes[static_cast<std::size_t>(rope_idx)].style,
             (is_own ? rope.cos : rope.sink_cos).as<float>() + at,
             (is_own ? rope.sin : rope.sink_sin).as<float>() + at, dims, num_heads, stride, x);
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
  const PagedKvLayer layer = kv.layer(layer_idx);
  const bool has_own_slots = layer.window == 0 && !batch.slot_lens.empty();
  queries.positions = has_own_slots ? batch.slot_positions : batch.positions;
  queries.query_start_loc = batch.query_start_loc;
  queries.seq_lens = has_own_slots ? batch.slot_lens : batch.seq_lens;
  queries.block_tables = group.block_tables;
  queries.max_blocks_per_seq = group.max_blocks_per_seq;
  queries.kept = {batch.kept.first, batch.kept.num_sinks, scratch.sink_q.as<float>()};
  if (!batch.page_budgets.empty() && layer_idx >= kDenseLayers && layer.window == 0) {
    scratch.selection.select(pool, isa, params, queries, layer, batch.page_budgets,
                             kv.page_bounds(layer_idx));
    queries.selection = &scratch.selection;
  }
  const bool votes = layer.window == 0 && !batch.voters.empty();
  if (votes) queries.softmax = scratch.softmax.as<SoftmaxState>();
  dunlin::attention(pool, isa, params, queries, layer, out, scratch.attention);
  if (votes) vote(layer_idx, params, queries, layer);
}

// And what the votes decide.
void Step::vote(int layer_idx, const AttentionParams& params, const AttentionBatch& queries,
                const PagedKvLayer& layer) {
  const KvLayerPlace& place = kv.layout().places[static_cast<std::size_t>(layer_idx)];
  const int full_idx = place.group_idx * kv.layout().layers_per_block + place.layer_in_block;
  scratch.voters.clear();
  bool compacts = false;
  for (const ForwardBatch::Voter& voter : batch.voters) {
    scratch.voters.push_back({voter.seq, voter.votes->of_layer(full_idx), voter.votes->stride()});
    compacts = compacts || !voter.compaction.is_none();
  }
  attention_votes(pool, isa, params, queries, layer, scratch.voters, scratch.attention);
  if (!compacts) return;
  const int num_heads = layer.num_kv_heads;
  pool.parallel_for(static_cast<int>(batch.voters.size()) * num_heads, [&](int i, int worker) {
    const ForwardBatch::Voter& voter = batch.voters[static_cast<std::size_t>(i / num_heads)];
    if (voter.compaction.is_none()) return;
    const std::int32_t* blocks =
        queries.block_tables.data() + voter.seq * queries.max_blocks_per_seq;
    compact_head(layer, i % num_heads, blocks, voter.compaction,
                 voter.votes->of_head(full_idx, i % num_heads),
                 scratch.compactions[static_cast<std::size_t>(worker)]);
  });
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
