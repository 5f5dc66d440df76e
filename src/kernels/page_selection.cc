#include "kernels/page_selection.h"

#include <algorithm>
#include <limits>

#include "kernels/float_kernels.h"
#include "kernels/kv_codec.h"
#include "quant/dequantize.h"

namespace dunlin {
namespace {

constexpr float kGreatestHalf = 65504.0f;

// One row of the block table.
const std::int32_t* table_of(const AttentionBatch& batch, int seq) {
  return batch.block_tables.data() + seq * batch.max_blocks_per_seq;
}

}  // namespace

void bound_page(const PagedKvLayer& layer, std::int32_t block, const PageBounds& bounds,
                float* keys) {
  const std::int64_t dim = layer.head_dim_k, stride = PageBounds::stride(layer.head_dim_k);
  const std::byte* stored = layer.base + block * layer.block_stride + layer.k_offset;
  std::uint16_t* out = bounds.base + block * layer.num_kv_heads * stride;
  for (int h = 0; h < layer.num_kv_heads; ++h, out += stride) {
    read_kv_keys(layer.k, stored, h, keys);
    for (std::int64_t d = 0; d < dim; ++d) {
      const float* row = keys + d * kKvBlockSize;
      float most = row[0], least = row[0];
      for (int t = 1; t < kKvBlockSize; ++t) {
        most = std::max(most, row[t]);
        least = std::min(least, row[t]);
      }
      out[d] = f32_to_f16(std::clamp(most, -kGreatestHalf, kGreatestHalf));
      out[dim + d] = f32_to_f16(std::clamp(least, -kGreatestHalf, kGreatestHalf));
    }
  }
  bounds.is_known[block] = 1;
}

void PageSelection::reserve(int num_threads, std::int64_t max_tokens, int num_kv_heads,
                            int head_dim_k, int num_heads) {
  begins_.reserve(static_cast<std::size_t>(max_tokens));
  units_.reserve(static_cast<std::size_t>(max_tokens * num_kv_heads));
  workers_.resize(static_cast<std::size_t>(num_threads));
  for (Worker& worker : workers_) {
    worker.keys.resize(static_cast<std::size_t>(head_dim_k) * kKvBlockSize);
    worker.q.resize(
        static_cast<std::size_t>(num_heads / num_kv_heads * PageBounds::stride(head_dim_k)));
  }
}

void PageSelection::select(ThreadPool& pool, Isa isa, const AttentionParams& params,
                           const AttentionBatch& batch, const PagedKvLayer& layer,
                           std::span<const std::int32_t> budgets, const PageBounds& bounds) {
  select_with(pool, float_kernels(isa), params, batch, layer, budgets, bounds);
}

void PageSelection::select_with(ThreadPool& pool, const FloatKernels& kernels,
                                const AttentionParams& params, const AttentionBatch& batch,
                                const PagedKvLayer& layer, std::span<const std::int32_t> budgets,
                                const PageBounds& bounds) {
  budgets_ = budgets;
  find_units(batch, layer, budgets);
  bound_unknown(pool, batch, layer, bounds);
  const auto width = static_cast<std::size_t>(batch.max_blocks_per_seq);
  for (Worker& worker : workers_) {
    if (worker.scores.size() >= width) continue;
    worker.scores.resize(width);
    worker.order.resize(width);
  }
  pool.parallel_for(static_cast<int>(units_.size()), [&](int i, int worker) {
    select_for(units_[static_cast<std::size_t>(i)], kernels, params, batch, layer, bounds,
               workers_[static_cast<std::size_t>(worker)]);
  });
}

void PageSelection::find_units(const AttentionBatch& batch, const PagedKvLayer& layer,
                               std::span<const std::int32_t> budgets) {
  begins_.assign(budgets.size(), -1);
  units_.clear();
  std::int64_t num_pages = 0;
  for (int seq = 0; seq < static_cast<int>(batch.seq_lens.size()); ++seq) {
    const std::int32_t end = batch.query_start_loc[static_cast<std::size_t>(seq) + 1];
    for (int token = batch.query_start_loc[static_cast<std::size_t>(seq)]; token < end; ++token) {
      const std::int32_t budget = budgets[static_cast<std::size_t>(token)];
      if (budget == 0) continue;
      begins_[static_cast<std::size_t>(token)] = num_pages;
      num_pages += std::int64_t{budget} * layer.num_kv_heads;
      for (int h = 0; h < layer.num_kv_heads; ++h) units_.push_back({seq, token, h});
    }
  }
  pages_.resize(static_cast<std::size_t>(num_pages));
}

// The last sparse token of a sequence needs all pages before its own.
void PageSelection::bound_unknown(ThreadPool& pool, const AttentionBatch& batch,
                                  const PagedKvLayer& layer, const PageBounds& bounds) {
  unknown_.clear();
  for (std::size_t i = 0; i < units_.size(); ++i) {
    if (i + 1 < units_.size() && units_[i + 1].seq == units_[i].seq) continue;
    const std::int32_t* table = table_of(batch, units_[i].seq);
    const int num_full = batch.positions[static_cast<std::size_t>(units_[i].token)] / kKvBlockSize;
    for (int b = 0; b < num_full; ++b)
      if (bounds.is_known[table[b]] == 0) unknown_.push_back(table[b]);
  }
  // Sequences may share blocks.
  std::sort(unknown_.begin(), unknown_.end());
  unknown_.erase(std::unique(unknown_.begin(), unknown_.end()), unknown_.end());
  if (unknown_.empty()) return;
  constexpr int kPagesAChunk = 16;
  const auto num = static_cast<int>(unknown_.size());
  pool.parallel_for((num + kPagesAChunk - 1) / kPagesAChunk, [&](int chunk, int worker) {
    for (int i = chunk * kPagesAChunk; i < std::min(num, (chunk + 1) * kPagesAChunk); ++i)
      bound_page(layer, unknown_[static_cast<std::size_t>(i)], bounds,
                 workers_[static_cast<std::size_t>(worker)].keys.data());
  });
}

void PageSelection::select_for(const Unit& unit, const FloatKernels& kernels,
                               const AttentionParams& params, const AttentionBatch& batch,
                               const PagedKvLayer& layer, const PageBounds& bounds,
                               Worker& worker) {
  const int num_rows = params.num_heads / layer.num_kv_heads;
  const std::int64_t dim = layer.head_dim_k, stride = PageBounds::stride(layer.head_dim_k);
  const float* q =
      batch.q + unit.token * batch.q_stride + std::int64_t{unit.kv_head} * num_rows * dim;
  for (int r = 0; r < num_rows; ++r) {
    float* row = worker.q.data() + r * stride;
    for (std::int64_t d = 0; d < dim; ++d) {
      row[d] = std::max(q[r * dim + d], 0.0f);
      row[dim + d] = std::min(q[r * dim + d], 0.0f);
    }
    std::fill(row + 2 * dim, row + stride, 0.0f);
  }
  const std::int32_t* table = table_of(batch, unit.seq);
  const int own = batch.positions[static_cast<std::size_t>(unit.token)] / kKvBlockSize;
  for (int b = 0; b < own; ++b) {
    const std::uint16_t* page =
        bounds.base + (std::int64_t{table[b]} * layer.num_kv_heads + unit.kv_head) * stride;
    const float score = kernels.page_score(page, worker.q.data(), num_rows, stride);
    worker.scores[static_cast<std::size_t>(b)] =
        score == score ? score : -std::numeric_limits<float>::infinity();
    worker.order[static_cast<std::size_t>(b)] = b;
  }
  const int num_chosen = budgets_[static_cast<std::size_t>(unit.token)] - 1;
  const auto first = worker.order.begin();
  std::nth_element(first, first + num_chosen, first + own, [&](std::int32_t a, std::int32_t b) {
    const float score_a = worker.scores[static_cast<std::size_t>(a)];
    const float score_b = worker.scores[static_cast<std::size_t>(b)];
    return score_a != score_b ? score_a > score_b : a < b;
  });
  std::sort(first, first + num_chosen);
  std::int32_t* out = pages_.data() + begins_[static_cast<std::size_t>(unit.token)] +
                      std::int64_t{unit.kv_head} * (num_chosen + 1);
  for (int i = 0; i < num_chosen; ++i) out[i] = table[first[i]];
  out[num_chosen] = table[own];
}

}  // namespace dunlin
