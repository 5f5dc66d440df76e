#include "kernels/attention_plan.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/kv_codec.h"
#include "kernels/page_selection.h"
#include "kernels/scratch_sizes.h"

namespace dunlin {
namespace {

// Cost of a chunk in multiply-adds: about 50 us on one core of AVX2 at most, and not so little
// that handing it out shows (10 us).
constexpr std::int64_t kMaxChunkCost = 2'000'000;
constexpr std::int64_t kMinChunkCost = 400'000;
constexpr int kChunksPerThread = 4;
constexpr std::int64_t kFloatBytes = sizeof(float);
constexpr std::int64_t kMaxPieces = 64;  // of one tile
// Below so many rows a KV head's time is that of reading K and V.
constexpr std::int64_t kReadingRows = 4;
// KV heads with at most so many rows each are joined, since a block's heads lie side by side and
// memory gives longer stretches sooner ...
constexpr int kMaxJoinedRows = 8;
// ... where a thread has so many splits that it can do without the division by heads.
constexpr std::int64_t kSplitsToJoin = 8;

std::int64_t tile_rows_cost(const AttentionPlanTile& tile) {
  return std::max<std::int64_t>(tile.rows_of_kv_head(), kReadingRows) * tile.num_kv_heads;
}

std::int64_t splits_of(const AttentionBatch& batch, const PagedKvLayer& layer) {
  std::int64_t splits = 0;
  for (const std::int32_t len : batch.seq_lens) {
    const std::int32_t seen = layer.window > 0 ? std::min(len, layer.window) : len;
    splits += (seen + kAttentionSplit - 1) / kAttentionSplit;
  }
  return splits;
}

// Query heads of a tile: all of a KV head's, or equal parts of them.
int heads_per_tile(int group) {
  const int cuts = (group + kMaxTileRows - 1) / kMaxTileRows;
  return (group + cuts - 1) / cuts;
}

std::int64_t round_up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }

}  // namespace

void gather_query(const PagedKvLayer& layer, float scale, const float* q, int row,
                  const AttentionWorkerScratch& scratch) {
  const std::int64_t dim = layer.head_dim_k;
  if (layer.k.rotation > 1) {
    std::copy_n(q, dim, scratch.widened);
    rotate_channels(scratch.widened, dim, layer.k.rotation,
                    1 / static_cast<float>(layer.k.rotation));
    q = scratch.widened;
  }
  float* scaled = scratch.q + row;
  for (std::int64_t d = 0; d < dim; ++d) scaled[d * kMaxTileRows] = q[d] * scale;
}

AttentionRange visible_range(const AttentionParams& params, const AttentionBatch& batch,
                             const PagedKvLayer& layer, int seq, int token) {
  const std::int32_t position = batch.positions[static_cast<std::size_t>(token)];
  AttentionRange range;
  range.begin =
      layer.window > 0 ? std::max(0, position + 1 - layer.window) : batch.first_kept(token);
  range.end = params.causal ? position + 1 : batch.seq_lens[static_cast<std::size_t>(seq)];
  return range;
}

AttentionScratch::Plan::Sizes AttentionScratch::Plan::sizes(int num_threads,
                                                            std::int64_t max_tokens, int num_heads,
                                                            int num_kv_heads, int head_dim_k,
                                                            int head_dim_v) {
  Sizes sizes;
  const std::int64_t o_stride = attention_o_stride(head_dim_v);
  const std::int64_t head_cuts = (num_heads / num_kv_heads + kMaxTileRows - 1) / kMaxTileRows;
  sizes.tiles = static_cast<std::size_t>(max_tokens * num_kv_heads * head_cuts);
  sizes.divided = static_cast<std::size_t>(num_threads * kChunksPerThread);
  sizes.works = sizes.tiles + sizes.divided * kMaxPieces;
  // A cache line between workers' arrays, and pages that do not all begin in the same set.
  sizes.worker_floats =
      round_up(kMaxTileRows * (head_dim_k + kScoreStride + 2 * o_stride +
                               attention_codes_stride(head_dim_k) / kFloatBytes) +
                   std::max(std::int64_t{kKvBlockSize} * head_dim_k, kTileSplit * o_stride),
               16) +
      48;
  sizes.workers_bytes = static_cast<std::size_t>(num_threads * sizes.worker_floats) * sizeof(float);
  sizes.partial_ml_bytes = 2 * kMaxPartialRows * sizeof(float);
  sizes.partial_o_bytes = static_cast<std::size_t>(kMaxPartialRows * o_stride) * sizeof(float);
  return sizes;
}

void AttentionScratch::Plan::reserve(int num_threads, std::int64_t max_tokens, int num_heads,
                                     int num_kv_heads, int head_dim_k, int head_dim_v) {
  const Sizes wanted =
      sizes(num_threads, max_tokens, num_heads, num_kv_heads, head_dim_k, head_dim_v);
  max_tokens_ = max_tokens;
  num_workers_ = num_threads;
  head_dim_k_ = head_dim_k;
  o_stride_ = attention_o_stride(head_dim_v);
  shared_.reserve(max_tokens);
  for (AttentionStage* stage : {&prefixes_, &own_}) {
    stage->tiles.reserve(wanted.tiles);
    stage->divided.reserve(wanted.divided);
    stage->works.reserve(wanted.works);
    stage->chunk_begin.reserve(wanted.works + 1);
  }
  worker_floats_ = wanted.worker_floats;
  workers_ = Buffer(wanted.workers_bytes);
  partial_ml_ = Buffer(wanted.partial_ml_bytes);
  partial_o_ = Buffer(wanted.partial_o_bytes);
}

std::int64_t attention_scratch_bytes(int num_threads, std::int64_t max_tokens, int num_heads,
                                     int num_kv_heads, int head_dim_k, int head_dim_v) {
  return AttentionScratch::Plan::sizes(num_threads, max_tokens, num_heads, num_kv_heads, head_dim_k,
                                       head_dim_v)
      .all_bytes();
}

std::int64_t AttentionScratch::Plan::Sizes::all_bytes() const {
  const std::size_t stage = tiles * sizeof(AttentionPlanTile) + works * sizeof(AttentionPlanWork) +
                            (works + 1 + divided) * sizeof(std::int32_t);
  return static_cast<std::int64_t>(2 * stage + workers_bytes + partial_ml_bytes + partial_o_bytes);
}

AttentionWorkerScratch AttentionScratch::Plan::worker(int idx) {
  DUNLIN_DCHECK(idx < num_workers_, "more workers than reserved");
  AttentionWorkerScratch scratch;
  scratch.q = workers_.as<float>() + idx * worker_floats_;
  scratch.scores = scratch.q + kMaxTileRows * head_dim_k_;
  scratch.part_o = scratch.scores + kMaxTileRows * kScoreStride;
  scratch.o = scratch.part_o + kMaxTileRows * o_stride_;
  scratch.q_codes = reinterpret_cast<std::int8_t*>(scratch.o + kMaxTileRows * o_stride_);
  scratch.widened = scratch.o + kMaxTileRows * o_stride_ +
                    kMaxTileRows * attention_codes_stride(head_dim_k_) / kFloatBytes;
  return scratch;
}

std::span<const AttentionPlanWork> AttentionStage::chunk(int i) const {
  const auto begin = static_cast<std::size_t>(chunk_begin[static_cast<std::size_t>(i)]);
  const auto end = static_cast<std::size_t>(chunk_begin[static_cast<std::size_t>(i) + 1]);
  return std::span(works).subspan(begin, end - begin);
}

void AttentionScratch::Plan::build(const AttentionParams& params, const AttentionBatch& batch,
                                   const PagedKvLayer& layer, int num_threads) {
  DUNLIN_CHECK(static_cast<std::int64_t>(batch.positions.size()) <= max_tokens_,
               "more tokens than reserved");
  DUNLIN_CHECK(num_threads <= num_workers_, "more threads than reserved");
  DUNLIN_CHECK(layer.head_dim_k <= head_dim_k_ && layer.head_dim_v <= o_stride_,
               "a larger head than reserved");
  DUNLIN_CHECK(params.num_heads % layer.num_kv_heads == 0,
               "query heads must share KV heads evenly");
  // Larger groups of query heads fill a tile by themselves.
  const bool may_share = params.num_heads / layer.num_kv_heads <= kMaxTileRows / 2;
  shared_.find(params, batch, layer, may_share ? kMaxPartialRows / 2 / params.num_heads : 0);
  num_partial_rows_ = std::int64_t{shared_.num_members()} * params.num_heads;
  const std::int64_t row_cost = layer.head_dim_k + layer.head_dim_v;
  prefixes_.tiles.clear();
  add_prefix_tiles(params, layer);
  cut_into_works(prefixes_, row_cost, num_threads);
  own_.tiles.clear();
  const bool join =
      layer.num_kv_heads > 1 && splits_of(batch, layer) >= kSplitsToJoin * num_threads;
  for (int seq = 0; seq < static_cast<int>(batch.seq_lens.size()); ++seq)
    add_tiles(params, batch, layer, seq, join);
  cut_into_works(own_, row_cost, num_threads);
}

void AttentionScratch::Plan::add_prefix_tiles(const AttentionParams& params,
                                              const PagedKvLayer& layer) {
  const int group_size = params.num_heads / layer.num_kv_heads;
  for (const SharedPrefixes::Group& group : shared_.groups()) {
    const int most = kMaxTileRows / group_size;
    const int cuts = (group.num_members + most - 1) / most;
    AttentionPlanTile tile{};
    tile.num_kv_heads = 1;
    tile.num_heads = group_size;
    tile.end = group.end;
    tile.begin_row = tile.partial_row = -1;
    for (tile.kv_head = 0; tile.kv_head < layer.num_kv_heads; ++tile.kv_head) {
      for (int cut = 0; cut < cuts; ++cut) {
        const int first = group.num_members * cut / cuts;
        tile.first_member = group.first_member + first;
        tile.num_tokens = group.num_members * (cut + 1) / cuts - first;
        tile.seq = shared_.seq_of(tile.first_member);
        prefixes_.tiles.push_back(tile);
      }
    }
  }
}

void AttentionScratch::Plan::add_selected_tiles(const AttentionParams& params,
                                                const AttentionBatch& batch,
                                                const PagedKvLayer& layer, int seq, int token) {
  const int group = params.num_heads / layer.num_kv_heads;
  AttentionPlanTile tile{};
  tile.seq = seq;
  tile.first_member = -1;
  tile.num_kv_heads = 1;
  tile.first_token = token;
  tile.num_tokens = 1;
  tile.end =
      batch.selection->num_positions(token, batch.positions[static_cast<std::size_t>(token)]);
  tile.is_selected = true;
  tile.begin_row = tile.partial_row = -1;
  for (tile.kv_head = 0; tile.kv_head < layer.num_kv_heads; ++tile.kv_head) {
    for (tile.first_head = 0; tile.first_head < group; tile.first_head += heads_per_tile(group)) {
      tile.num_heads = std::min(heads_per_tile(group), group - tile.first_head);
      own_.tiles.push_back(tile);
    }
  }
}

// Last tokens first: in a long prompt they see the most, and the longest work should begin early.
void AttentionScratch::Plan::add_tiles(const AttentionParams& params, const AttentionBatch& batch,
                                       const PagedKvLayer& layer, int seq, bool join_kv_heads) {
  const int seq_begin = batch.query_start_loc[static_cast<std::size_t>(seq)];
  int seq_end = batch.query_start_loc[static_cast<std::size_t>(seq) + 1];
  while (batch.selection != nullptr && seq_end > seq_begin &&
         batch.selection->is_sparse(seq_end - 1)) {
    add_selected_tiles(params, batch, layer, seq, --seq_end);
  }
  const int group = params.num_heads / layer.num_kv_heads;
  const int tokens_per_tile = std::max(1, kMaxTileRows / group);
  const int rows = (seq_end - seq_begin) * group;
  const int member = shared_.member_of(seq);
  const int joined = join_kv_heads && rows > 0 && rows <= kMaxJoinedRows
                         ? std::min(layer.num_kv_heads, kMaxTileRows / rows)
                         : 1;
  for (int end = seq_end; end > seq_begin; end -= tokens_per_tile) {
    const int begin = std::max(seq_begin, end - tokens_per_tile);
    AttentionPlanTile tile{};
    tile.seq = seq;
    tile.first_member = -1;
    tile.first_token = begin;
    tile.num_tokens = end - begin;
    tile.begin =
        std::max(visible_range(params, batch, layer, seq, begin).begin, shared_.end_of(seq));
    tile.end = visible_range(params, batch, layer, seq, end - 1).end;
    tile.begin_row = member < 0 ? -1 : std::int64_t{member} * params.num_heads;
    tile.partial_row = -1;
    tile.num_sinks = layer.window > 0 ? 0 : batch.num_sinks(seq, end - 1);
    for (tile.kv_head = 0; tile.kv_head < layer.num_kv_heads; tile.kv_head += joined) {
      tile.num_kv_heads = std::min(joined, layer.num_kv_heads - tile.kv_head);
      for (tile.first_head = 0; tile.first_head < group; tile.first_head += heads_per_tile(group)) {
        tile.num_heads = std::min(heads_per_tile(group), group - tile.first_head);
        own_.tiles.push_back(tile);
      }
    }
  }
}

// Tiles that are too few to go round are divided along their splits, at the price of keeping the
// partials; then works are put together to chunks.
void AttentionScratch::Plan::cut_into_works(AttentionStage& stage, std::int64_t row_cost,
                                            int num_threads) {
  std::int64_t total = 0;
  for (const AttentionPlanTile& tile : stage.tiles)
    total += tile_rows_cost(tile) * (tile.end - tile.begin) * row_cost;
  const std::int64_t target =
      std::clamp(total / (num_threads * kChunksPerThread), kMinChunkCost, kMaxChunkCost);
  const bool few = static_cast<int>(stage.tiles.size()) < num_threads * kChunksPerThread;

  stage.works.clear();
  stage.divided.clear();
  stage.chunk_begin.assign(1, 0);
  std::int64_t chunk_cost = 0;
  for (std::size_t i = 0; i < stage.tiles.size(); ++i) {
    AttentionPlanTile& tile = stage.tiles[i];
    const std::int64_t cost = tile_rows_cost(tile) * (tile.end - tile.begin) * row_cost;
    const std::int64_t first = tile.first_split(), splits = tile.end_split() - first;
    std::int64_t pieces = 1;
    if (few && num_threads > 1 && cost > target + target / 2 && tile.num_sinks == 0 &&
        num_partial_rows_ + splits * tile.num_rows() <= kMaxPartialRows) {
      pieces = std::min({splits, (cost + target - 1) / target, kMaxPieces});
    }
    if (pieces > 1) {
      tile.partial_row = num_partial_rows_;
      num_partial_rows_ += splits * tile.num_rows();
      stage.divided.push_back(static_cast<std::int32_t>(i));
    }
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      stage.works.push_back({static_cast<std::int32_t>(i),
                             static_cast<std::int32_t>(first + splits * piece / pieces),
                             static_cast<std::int32_t>(first + splits * (piece + 1) / pieces)});
      chunk_cost += cost / pieces;
      if (chunk_cost >= target) {
        stage.chunk_begin.push_back(static_cast<std::int32_t>(stage.works.size()));
        chunk_cost = 0;
      }
    }
  }
  if (stage.chunk_begin.back() != static_cast<std::int32_t>(stage.works.size()))
    stage.chunk_begin.push_back(static_cast<std::int32_t>(stage.works.size()));
}

}  // namespace dunlin
