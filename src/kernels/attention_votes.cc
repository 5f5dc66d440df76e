#include "kernels/attention_votes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "kernels/attention_plan.h"
#include "kernels/float_kernels.h"
#include "kernels/kv_codec.h"

namespace dunlin {
namespace {

constexpr double kLog2E = 1.4426950408889634;

struct Call {
  const FloatKernels& kernels;
  const AttentionParams& params;
  const AttentionBatch& batch;
  const PagedKvLayer& layer;

  int group() const { return params.num_heads / layer.num_kv_heads; }
  std::int32_t length(const VotingSequence& voter) const {
    return batch.seq_lens[static_cast<std::size_t>(voter.seq)];
  }
  int num_splits(const VotingSequence& voter) const {
    return (length(voter) + kAttentionSplit - 1) / kAttentionSplit;
  }
  const std::int32_t* blocks(const VotingSequence& voter) const {
    return batch.block_tables.data() + voter.seq * batch.max_blocks_per_seq;
  }
};

// A split of positions of one KV head: all votes for them.
struct Unit {
  const VotingSequence* voter = nullptr;
  int kv_head = 0;
  int split = 0;
};

// Unit i of all, heads within splits.
Unit unit_of(const Call& call, std::span<const VotingSequence> voters, int i) {
  for (const VotingSequence& voter : voters) {
    const int num = call.num_splits(voter) * call.layer.num_kv_heads;
    if (i < num) return {&voter, i % call.layer.num_kv_heads, i / call.layer.num_kv_heads};
    i -= num;
  }
  DUNLIN_CHECK(false, "there are as many units as were counted");
  return {};
}

// The rows of a unit are its tokens' query heads of the KV head, token by token.
struct Rows {
  std::array<std::int32_t, kMaxTileRows> begin{}, end;
  std::array<float, kMaxTileRows> most, share;
};

// Rows [first, first + count).
AttentionTile gather(const Call& call, const Unit& unit, int first, int count,
                     const AttentionWorkerScratch& scratch, Rows& rows) {
  const std::int64_t dim = call.layer.head_dim_k;
  const int first_token = call.batch.query_start_loc[static_cast<std::size_t>(unit.voter->seq)];
  const float scale = static_cast<float>(call.params.scale * kLog2E);
  std::int32_t tile_end = 0;
  for (int r = 0; r < count; ++r) {
    const int token = first_token + (first + r) / call.group();
    const int head = unit.kv_head * call.group() + (first + r) % call.group();
    gather_query(call.layer, scale, call.batch.q + token * call.batch.q_stride + head * dim, r,
                 scratch);
    const auto at = static_cast<std::size_t>(r);
    const SoftmaxState& state =
        call.batch.softmax[std::int64_t{token} * call.params.num_heads + head];
    rows.end[at] = call.batch.positions[static_cast<std::size_t>(token)] + 1;
    rows.most[at] = state.most;
    rows.share[at] = 1 / state.sum;
    tile_end = std::max(tile_end, rows.end[at]);
  }
  AttentionTile tile = {
      .layer = &call.layer,
      .blocks = call.blocks(*unit.voter),
      .kv_head = unit.kv_head,
      .num_kv_heads = 1,
      .num_rows = count,
      .q = scratch.q,
      .begin = rows.begin.data(),
      .end = rows.end.data(),
      .tile_begin = 0,
      .tile_end = tile_end,
      .softcap = static_cast<float>(call.params.softcap * kLog2E),
      .o_stride = attention_o_stride(call.layer.head_dim_v),
      .scores = scratch.scores,
      .q_codes = scratch.q_codes,
      .q_codes_stride = attention_codes_stride(call.layer.head_dim_k),
      .widened = scratch.widened,
  };
  if (call.kernels.prepare_queries != nullptr) call.kernels.prepare_queries(tile);
  return tile;
}

int num_rows(const Call& call, const Unit& unit) {
  const auto seq = static_cast<std::size_t>(unit.voter->seq);
  return (call.batch.query_start_loc[seq + 1] - call.batch.query_start_loc[seq]) * call.group();
}

void vote(const Call& call, const Unit& unit, const AttentionWorkerScratch& scratch) {
  Rows rows;
  const std::int64_t begin = std::int64_t{unit.split} * kAttentionSplit;
  float* votes = unit.voter->votes + unit.kv_head * unit.voter->stride + begin;
  const int num = num_rows(call, unit);
  for (int first = 0; first < num; first += kMaxTileRows) {
    const AttentionTile tile =
        gather(call, unit, first, std::min(kMaxTileRows, num - first), scratch, rows);
    if (tile.tile_end <= begin) continue;
    call.kernels.vote_split(tile, unit.split, rows.most.data(), rows.share.data(), votes);
  }
}

// One query of the reference: its whole softmax, then its votes for all positions.
void vote_plainly(const Call& call, const VotingSequence& voter, int kv_head, int row,
                  const AttentionWorkerScratch& scratch) {
  const std::int64_t dim = call.layer.head_dim_k;
  const int token =
      call.batch.query_start_loc[static_cast<std::size_t>(voter.seq)] + row / call.group();
  const int head = kv_head * call.group() + row % call.group();
  const float* q = call.batch.q + token * call.batch.q_stride + head * dim;
  const int end = call.batch.positions[static_cast<std::size_t>(token)] + 1;
  const auto each_score = [&](auto take) {
    for (int j = 0; j < end; ++j) {
      const std::byte* block =
          call.layer.base + call.blocks(voter)[j / kKvBlockSize] * call.layer.block_stride;
      if (j % kKvBlockSize == 0)
        read_kv_keys(call.layer.k, block + call.layer.k_offset, kv_head, scratch.widened);
      double score = 0;
      for (std::int64_t d = 0; d < dim; ++d)
        score += double{q[d]} * scratch.widened[d * kKvBlockSize + j % kKvBlockSize];
      score *= call.params.scale;
      if (call.params.softcap != 0)
        score = call.params.softcap * std::tanh(score / call.params.softcap);
      take(j, score);
    }
  };
  double most = call.params.sinks != nullptr ? call.params.sinks[head] : -1e30, sum = 0;
  each_score([&](int, double score) { most = std::max(most, score); });
  each_score([&](int, double score) { sum += std::exp(score - most); });
  if (call.params.sinks != nullptr) sum += std::exp(call.params.sinks[head] - most);
  float* votes = voter.votes + kv_head * voter.stride;
  each_score(
      [&](int j, double score) { votes[j] += static_cast<float>(std::exp(score - most) / sum); });
}

}  // namespace

void attention_votes_with(ThreadPool& pool, const FloatKernels& kernels,
                          const AttentionParams& params, const AttentionBatch& batch,
                          const PagedKvLayer& layer, std::span<const VotingSequence> voters,
                          AttentionScratch& scratch) {
  const Call call{kernels, params, batch, layer};
  AttentionScratch::Plan& plan = scratch.plan();
  if (kernels.vote_split == nullptr) {
    const int num_heads = layer.num_kv_heads;
    pool.parallel_for(static_cast<int>(voters.size()) * num_heads, [&](int i, int worker) {
      const VotingSequence& voter = voters[static_cast<std::size_t>(i / num_heads)];
      const Unit unit{&voter, i % num_heads, 0};
      for (int row = 0; row < num_rows(call, unit); ++row)
        vote_plainly(call, voter, unit.kv_head, row, plan.worker(worker));
    });
    return;
  }
  int num_units = 0;
  for (const VotingSequence& voter : voters)
    num_units += call.num_splits(voter) * layer.num_kv_heads;
  pool.parallel_for(num_units, [&](int i, int worker) {
    vote(call, unit_of(call, voters, i), plan.worker(worker));
  });
}

void attention_votes(ThreadPool& pool, Isa isa, const AttentionParams& params,
                     const AttentionBatch& batch, const PagedKvLayer& layer,
                     std::span<const VotingSequence> voters, AttentionScratch& scratch) {
  attention_votes_with(pool, float_kernels(isa), params, batch, layer, voters, scratch);
}

}  // namespace dunlin
