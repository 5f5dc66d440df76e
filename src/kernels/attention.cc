#include "kernels/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels/attention_plan.h"
#include "kernels/float_kernels.h"
#include "kernels/kv_codec.h"
#include "kernels/page_selection.h"

namespace dunlin {
namespace {

static_assert(kAttentionSplit == kTileSplit);
using Plan = AttentionScratch::Plan;
using Tile = AttentionPlanTile;
using Stage = AttentionStage;

constexpr double kLog2E = 1.4426950408889634;
constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Everything a chunk needs to know.
struct Call {
  const FloatKernels& kernels;
  const AttentionParams& params;
  const AttentionBatch& batch;
  const PagedKvLayer& layer;
  float* out;
  Plan& plan;

  int heads_per_kv_head() const { return params.num_heads / layer.num_kv_heads; }
  std::int64_t o_stride() const { return attention_o_stride(layer.head_dim_v); }
  int token_of(const Tile& tile, int row) const {
    const int idx = row % tile.rows_of_kv_head() / tile.num_heads;
    if (tile.first_member < 0) return tile.first_token + idx;
    const int seq = plan.shared().seq_of(tile.first_member + idx);
    return batch.query_start_loc[static_cast<std::size_t>(seq)];
  }
  int head_of(const Tile& tile, int row) const {
    const int kv_head = tile.kv_head + row / tile.rows_of_kv_head();
    return kv_head * heads_per_kv_head() + tile.first_head + row % tile.num_heads;
  }
  // What a row's prefix has come to, or nothing.
  void begin(const Tile& tile, int row, float& m, float& l, float* o) const {
    m = kNothing;
    l = 0;
    if (tile.begin_row < 0) {
      std::fill_n(o, o_stride(), 0.0f);
      return;
    }
    const std::int64_t at = tile.begin_row + head_of(tile, row);
    m = plan.partial_m()[at];
    l = plan.partial_l()[at];
    std::copy_n(plan.partial_o() + at * o_stride(), o_stride(), o);
  }
  void finish(const Tile& tile, int row, float m, float l, const float* o) const {
    const int head = head_of(tile, row);
    if (tile.first_member >= 0) {
      const std::int64_t member = tile.first_member + row / tile.num_heads;
      const std::int64_t at = member * params.num_heads + head;
      plan.partial_m()[at] = m;
      plan.partial_l()[at] = l;
      std::copy_n(o, o_stride(), plan.partial_o() + at * o_stride());
      return;
    }
    const float sink =
        params.sinks == nullptr ? kNothing : static_cast<float>(params.sinks[head] * kLog2E);
    const std::int64_t at = std::int64_t{token_of(tile, row)} * params.num_heads + head;
    if (batch.softmax != nullptr) batch.softmax[at] = {m, l + std::exp2(sink - m)};
    float* to = out + at * layer.head_dim_v;
    kernels.finish_row(layer.head_dim_v, sink, m, l, o, to);
    const int rotation = layer.values_in_keys ? layer.k.rotation : layer.v.rotation;
    if (rotation > 1)
      rotate_channels(to, layer.head_dim_v, rotation, 1 / static_cast<float>(rotation));
  }
};

// A tile's rows as the kernels want them, in the worker's scratch.
struct Rows {
  AttentionTile tile;
  std::array<std::int32_t, kMaxTileRows> begin, end;
};

enum class Part { kKept, kSinks };

// What a row of the tile sees of the part.
AttentionRange range_of(const Call& call, const Tile& tile, int token, Part part) {
  if (tile.first_member >= 0 || tile.is_selected) return {tile.begin, tile.end};
  if (part == Part::kSinks) return {0, call.batch.num_sinks(tile.seq, token)};
  return visible_range(call.params, call.batch, call.layer, tile.seq, token);
}

void gather_rows(const Call& call, const Tile& tile, const AttentionWorkerScratch& scratch,
                 Rows& rows, Part part = Part::kKept) {
  const std::int64_t dim = call.layer.head_dim_k;
  const bool is_sinks = part == Part::kSinks;
  const float* const queries = is_sinks ? call.batch.kept.sink_q : call.batch.q;
  const std::int64_t q_stride = is_sinks ? call.params.num_heads * dim : call.batch.q_stride;
  const float scale = static_cast<float>(call.params.scale * kLog2E);
  const int num_rows = tile.num_rows();
  for (int r = 0; r < num_rows; ++r) {
    const int token = call.token_of(tile, r);
    const AttentionRange range = range_of(call, tile, token, part);
    const bool sees = range.begin < range.end;  // else it may have no query
    if (sees)
      gather_query(call.layer, scale, queries + token * q_stride + call.head_of(tile, r) * dim, r,
                   scratch);
    else
      for (std::int64_t d = 0; d < dim; ++d) scratch.q[d * kMaxTileRows + r] = 0;
    rows.begin[static_cast<std::size_t>(r)] = range.begin;
    rows.end[static_cast<std::size_t>(r)] = range.end;
  }
  rows.tile = {
      .layer = &call.layer,
      .blocks = tile.is_selected
                    ? call.batch.selection->pages(tile.first_token, tile.kv_head).data()
                    : call.batch.block_tables.data() + tile.seq * call.batch.max_blocks_per_seq,
      .kv_head = tile.kv_head,
      .num_kv_heads = tile.num_kv_heads,
      .num_rows = tile.rows_of_kv_head(),
      .q = scratch.q,
      .begin = rows.begin.data(),
      .end = rows.end.data(),
      .tile_begin = is_sinks ? 0 : tile.begin,
      .tile_end = is_sinks ? tile.num_sinks : tile.end,
      .softcap = static_cast<float>(call.params.softcap * kLog2E),
      .o_stride = call.o_stride(),
      .scores = scratch.scores,
      .q_codes = scratch.q_codes,
      .q_codes_stride = attention_codes_stride(call.layer.head_dim_k),
      .widened = scratch.widened,
  };
  if (call.kernels.prepare_queries != nullptr) call.kernels.prepare_queries(rows.tile);
}

using RowFloats = std::array<float, kMaxTileRows>;

// Merges the splits of a part as they come.
void attend_part(const Call& call, const Tile& tile, Part part,
                 const AttentionWorkerScratch& scratch, RowFloats& m, RowFloats& l) {
  Rows rows;
  gather_rows(call, tile, scratch, rows, part);
  const std::int64_t stride = call.o_stride();
  const std::int64_t first = rows.tile.tile_begin / kAttentionSplit;
  const std::int64_t last = (rows.tile.tile_end - 1) / kAttentionSplit;
  RowFloats part_m, part_l;
  for (std::int64_t split = first; split <= last; ++split) {
    call.kernels.attend_split(rows.tile, split, part_m.data(), part_l.data(), scratch.part_o);
    for (std::size_t r = 0; r < static_cast<std::size_t>(tile.num_rows()); ++r) {
      const std::int64_t at = static_cast<std::int64_t>(r) * stride;
      call.kernels.merge_partial(stride, part_m[r], part_l[r], scratch.part_o + at, &m[r], &l[r],
                                 scratch.o + at);
    }
  }
}

// All splits of a tile.
void run_straight(const Call& call, const Tile& tile, const AttentionWorkerScratch& scratch) {
  const std::int64_t stride = call.o_stride();
  RowFloats m, l;
  for (int r = 0; r < tile.num_rows(); ++r) {
    const auto i = static_cast<std::size_t>(r);
    call.begin(tile, r, m[i], l[i], scratch.o + r * stride);
  }
  if (tile.num_sinks > 0) attend_part(call, tile, Part::kSinks, scratch, m, l);
  attend_part(call, tile, Part::kKept, scratch, m, l);
  for (int r = 0; r < tile.num_rows(); ++r) {
    const auto i = static_cast<std::size_t>(r);
    call.finish(tile, r, m[i], l[i], scratch.o + r * stride);
  }
}

// Some splits of a divided tile, kept for merge_divided.
void run_part(const Call& call, const Tile& tile, const AttentionPlanWork& work,
              const AttentionWorkerScratch& scratch) {
  Rows rows;
  gather_rows(call, tile, scratch, rows);
  for (std::int64_t split = work.first_split; split < work.end_split; ++split) {
    const std::int64_t at = tile.partial_row + (split - tile.first_split()) * tile.num_rows();
    call.kernels.attend_split(rows.tile, split, call.plan.partial_m() + at,
                              call.plan.partial_l() + at,
                              call.plan.partial_o() + at * call.o_stride());
  }
}

// Rows [first, end) of a divided tile.
void merge_divided(const Call& call, const Tile& tile, int first, int end,
                   const AttentionWorkerScratch& scratch) {
  const std::int64_t stride = call.o_stride(), rows = tile.num_rows();
  for (int r = first; r < end; ++r) {
    float m, l;
    call.begin(tile, r, m, l, scratch.o);
    for (std::int64_t split = tile.first_split(); split < tile.end_split(); ++split) {
      const std::int64_t at = tile.partial_row + (split - tile.first_split()) * rows + r;
      call.kernels.merge_partial(stride, call.plan.partial_m()[at], call.plan.partial_l()[at],
                                 call.plan.partial_o() + at * stride, &m, &l, scratch.o);
    }
    call.finish(tile, r, m, l, scratch.o);
  }
}

void run_stage(ThreadPool& pool, const Call& call, const Stage& stage) {
  pool.parallel_for(stage.num_chunks(), [&](int chunk, int worker) {
    const AttentionWorkerScratch memory = call.plan.worker(worker);
    for (const AttentionPlanWork& work : stage.chunk(chunk)) {
      const Tile& tile = stage.tiles[static_cast<std::size_t>(work.tile)];
      if (tile.partial_row < 0)
        run_straight(call, tile, memory);
      else
        run_part(call, tile, work, memory);
    }
  });
  if (stage.divided.empty()) return;
  // Each in as many parts as there are threads.
  const int parts = pool.num_threads();
  pool.parallel_for(static_cast<int>(stage.divided.size()) * parts, [&](int i, int worker) {
    const std::int32_t idx = stage.divided[static_cast<std::size_t>(i / parts)];
    const Tile& tile = stage.tiles[static_cast<std::size_t>(idx)];
    const int part = i % parts, rows = tile.num_rows();
    merge_divided(call, tile, rows * part / parts, rows * (part + 1) / parts,
                  call.plan.worker(worker));
  });
}

}  // namespace

void attention_with(ThreadPool& pool, const FloatKernels& kernels, const AttentionParams& params,
                    const AttentionBatch& batch, const PagedKvLayer& layer, float* out,
                    AttentionScratch& scratch) {
  Plan& plan = scratch.plan();
  if (kernels.attend_split == nullptr) {
    reference_attention(pool, params, batch, layer, out, plan);
    return;
  }
  plan.build(params, batch, layer, pool.num_threads());
  const Call call{kernels, params, batch, layer, out, plan};
  if (plan.prefixes().num_chunks() > 0) run_stage(pool, call, plan.prefixes());
  run_stage(pool, call, plan.own());
}

void attention(ThreadPool& pool, Isa isa, const AttentionParams& params,
               const AttentionBatch& batch, const PagedKvLayer& layer, float* out,
               AttentionScratch& scratch) {
  attention_with(pool, float_kernels(isa), params, batch, layer, out, scratch);
}

AttentionScratch::AttentionScratch() : plan_(std::make_unique<Plan>()) {}
AttentionScratch::~AttentionScratch() = default;
AttentionScratch::AttentionScratch(AttentionScratch&&) noexcept = default;
AttentionScratch& AttentionScratch::operator=(AttentionScratch&&) noexcept = default;

void AttentionScratch::reserve(int num_threads, std::int64_t max_tokens, std::int64_t max_seqs,
                               int num_heads, int num_kv_heads, int head_dim_k, int head_dim_v) {
  DUNLIN_CHECK(max_seqs <= max_tokens, "each sequence of a step has a token");
  plan_->reserve(num_threads, max_tokens, num_heads, num_kv_heads, head_dim_k, head_dim_v);
}

}  // namespace dunlin
