#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/attention_plan.h"
#include "kernels/kv_codec.h"
#include "kernels/page_selection.h"

namespace dunlin {
namespace {

// One query head's softmax, taken in position by position (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018).
struct Running {
  double m = -std::numeric_limits<double>::infinity();
  double l = 0;
};

void take_in(double score, const float* value, std::int64_t dim, Running& run, double* o) {
  if (score > run.m) {
    const double keep = std::exp(run.m - score);
    run.l *= keep;
    for (std::int64_t d = 0; d < dim; ++d) o[d] *= keep;
    run.m = score;
  }
  const double weight = std::exp(score - run.m);
  run.l += weight;
  for (std::int64_t d = 0; d < dim; ++d) o[d] += weight * value[d];
}

// A block of a KV head as floats: keys [dim_k, 16] and values [16, dim_v].
void read_block(const PagedKvLayer& layer, const std::byte* block, int kv_head, float* keys,
                float* values) {
  const std::int64_t dim_v = layer.head_dim_v;
  read_kv_keys(layer.k, block + layer.k_offset, kv_head, keys);
  if (layer.values_in_keys) {
    for (std::int64_t t = 0; t < kKvBlockSize; ++t)
      for (std::int64_t d = 0; d < dim_v; ++d) values[t * dim_v + d] = keys[d * kKvBlockSize + t];
    return;
  }
  read_kv_values(layer.v, block + layer.v_offset, kv_head, values);
}

// The query heads [first_head, first_head + num_heads) of one KV head for one token.
struct Unit {
  int seq, token, kv_head, first_head, num_heads;
};

using Runs = std::array<Running, kMaxTileRows>;

// The positions of `range` in a row of blocks, with the unit's queries q [num_heads, head_dim_k].
void take_in_range(const AttentionParams& params, const PagedKvLayer& layer, const Unit& unit,
                   const AttentionRange& range, const std::int32_t* blocks, const float* queries,
                   float* keys, Runs& runs, double* o) {
  const std::int64_t dim_k = layer.head_dim_k, dim_v = layer.head_dim_v;
  float* values = keys + kKvBlockSize * dim_k;
  for (std::int64_t b = range.begin / kKvBlockSize; b * kKvBlockSize < range.end; ++b) {
    const std::byte* block = layer.base + blocks[b] * layer.block_stride;
    read_block(layer, block, unit.kv_head, keys, values);
    const std::int64_t t0 = std::max<std::int64_t>(0, range.begin - b * kKvBlockSize);
    const std::int64_t t1 = std::min<std::int64_t>(kKvBlockSize, range.end - b * kKvBlockSize);
    for (int h = 0; h < unit.num_heads; ++h) {
      const float* q = queries + h * dim_k;
      std::array<double, kKvBlockSize> scores{};
      for (std::int64_t d = 0; d < dim_k; ++d)
        for (std::size_t t = 0; t < kKvBlockSize; ++t)
          scores[t] += static_cast<double>(q[d]) * keys[d * kKvBlockSize + static_cast<int>(t)];
      for (std::int64_t t = t0; t < t1; ++t) {
        double score = scores[static_cast<std::size_t>(t)] * params.scale;
        if (params.softcap != 0) score = params.softcap * std::tanh(score / params.softcap);
        take_in(score, values + t * dim_v, dim_v, runs[static_cast<std::size_t>(h)], o + h * dim_v);
      }
    }
  }
}

void attend(const AttentionParams& params, const AttentionBatch& batch, const PagedKvLayer& layer,
            const Unit& unit, float* keys, double* o, float* out) {
  const std::int64_t dim_k = layer.head_dim_k, dim_v = layer.head_dim_v;
  Runs runs{};
  std::fill_n(o, unit.num_heads * dim_v, 0.0);
  const std::int32_t* table = batch.block_tables.data() + unit.seq * batch.max_blocks_per_seq;
  const float* q = batch.q + unit.token * batch.q_stride + unit.first_head * dim_k;
  const int num_sinks = layer.window > 0 ? 0 : batch.num_sinks(unit.seq, unit.token);
  if (num_sinks > 0) {
    const std::int64_t row = std::int64_t{unit.token} * params.num_heads + unit.first_head;
    take_in_range(params, layer, unit, {0, num_sinks}, table, batch.kept.sink_q + row * dim_k, keys,
                  runs, o);
  }
  AttentionRange range = visible_range(params, batch, layer, unit.seq, unit.token);
  if (batch.selection != nullptr && batch.selection->is_sparse(unit.token)) {
    table = batch.selection->pages(unit.token, unit.kv_head).data();
    range = {0, batch.selection->num_positions(
                    unit.token, batch.positions[static_cast<std::size_t>(unit.token)])};
  }
  take_in_range(params, layer, unit, range, table, q, keys, runs, o);
  for (int h = 0; h < unit.num_heads; ++h) {
    const int head = unit.first_head + h;
    Running& run = runs[static_cast<std::size_t>(h)];
    double total = run.l;
    if (params.sinks != nullptr) total += std::exp(params.sinks[head] - run.m);
    float* row = out + (std::int64_t{unit.token} * params.num_heads + head) * dim_v;
    for (std::int64_t d = 0; d < dim_v; ++d) row[d] = static_cast<float>(o[h * dim_v + d] / total);
  }
}

}  // namespace

void reference_attention(ThreadPool& pool, const AttentionParams& params,
                         const AttentionBatch& batch, const PagedKvLayer& layer, float* out,
                         AttentionScratch::Plan& plan) {
  const int group = params.num_heads / layer.num_kv_heads;
  for (int seq = 0; seq < static_cast<int>(batch.seq_lens.size()); ++seq) {
    const int first = batch.query_start_loc[static_cast<std::size_t>(seq)];
    const int count = batch.query_start_loc[static_cast<std::size_t>(seq) + 1] - first;
    pool.parallel_for(count * layer.num_kv_heads, [&](int i, int worker) {
      const AttentionWorkerScratch scratch = plan.worker(worker);
      Unit unit{seq, first + i / layer.num_kv_heads, i % layer.num_kv_heads, 0, 0};
      for (int h = 0; h < group; h += kMaxTileRows) {
        unit.first_head = unit.kv_head * group + h;
        unit.num_heads = std::min(kMaxTileRows, group - h);
        // Two float rows of part_o and o, which adjoin, hold one row of doubles.
        attend(params, batch, layer, unit, scratch.q, reinterpret_cast<double*>(scratch.part_o),
               out);
      }
    });
  }
}

}  // namespace dunlin
