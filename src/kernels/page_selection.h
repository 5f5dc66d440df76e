// Which pages a query reads where it may not read all: those that can matter most to it (Tang et
// al., "Quest: query-aware sparsity for efficient long-context LLM inference", 2024).
//
// A page is a block. Of each full page and KV head the greatest and least of each dimension of its
// keys are known (PageBounds). So no key k of the page has a greater product with a query q than
//
//   sum_d max(q_d max_d, q_d min_d) = sum_d max(q_d, 0) max_d + min(q_d, 0) min_d
//
// which is one product of twice as many dimensions. A KV head reads the pages for which this is
// greatest, taking for each page the greatest of its query heads, and always the query's own page,
// which may not be full. Ties go to the earlier page.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpu/isa.h"
#include "cpu/thread_pool.h"
#include "kernels/attention.h"
#include "kernels/page_bounds.h"
#include "kernels/paged_kv.h"

namespace dunlin {

// Reads a full block's keys, as the cache stands for them. keys [head_dim_k, 16]: scratch.
void bound_page(const PagedKvLayer& layer, std::int32_t block, const PageBounds& bounds,
                float* keys);

struct FloatKernels;

class PageSelection {
 public:
  // The largest that a step will have.
  void reserve(int num_threads, std::int64_t max_tokens, int num_kv_heads, int head_dim_k,
               int num_heads);

  // budgets [num_tokens]: pages that a token's query may read, 0: all. Those of one sequence that
  // read all come first. Brings bounds up to date where they are needed.
  void select(ThreadPool& pool, Isa isa, const AttentionParams& params, const AttentionBatch& batch,
              const PagedKvLayer& layer, std::span<const std::int32_t> budgets,
              const PageBounds& bounds);

  // With a given table.
  void select_with(ThreadPool& pool, const FloatKernels& kernels, const AttentionParams& params,
                   const AttentionBatch& batch, const PagedKvLayer& layer,
                   std::span<const std::int32_t> budgets, const PageBounds& bounds);

  // Whether the token's query reads only some pages.
  bool is_sparse(int token) const { return begins_[static_cast<std::size_t>(token)] >= 0; }
  // Its blocks for a KV head, ascending; the last is its own.
  std::span<const std::int32_t> pages(int token, int kv_head) const {
    const auto num = static_cast<std::size_t>(budgets_[static_cast<std::size_t>(token)]);
    const auto begin = static_cast<std::size_t>(begins_[static_cast<std::size_t>(token)]);
    return std::span(pages_).subspan(begin + static_cast<std::size_t>(kv_head) * num, num);
  }
  // Positions in these pages up to the query's own, which is at `position`.
  std::int32_t num_positions(int token, std::int32_t position) const {
    return (budgets_[static_cast<std::size_t>(token)] - 1) * kKvBlockSize +
           position % kKvBlockSize + 1;
  }

 private:
  struct Unit {
    int seq, token, kv_head;
  };
  struct Worker {
    std::vector<float> q, scores, keys;
    std::vector<std::int32_t> order;
  };

  void find_units(const AttentionBatch& batch, const PagedKvLayer& layer,
                  std::span<const std::int32_t> budgets);
  void bound_unknown(ThreadPool& pool, const AttentionBatch& batch, const PagedKvLayer& layer,
                     const PageBounds& bounds);
  void select_for(const Unit& unit, const FloatKernels& kernels, const AttentionParams& params,
                  const AttentionBatch& batch, const PagedKvLayer& layer, const PageBounds& bounds,
                  Worker& worker);

  std::span<const std::int32_t> budgets_;
  std::vector<std::int64_t> begins_;  // [num_tokens] in pages_; -1: reads all
  std::vector<std::int32_t> pages_;   // [sparse tokens, num_kv_heads, budget]
  std::vector<Unit> units_;
  std::vector<std::int32_t> unknown_;  // blocks
  std::vector<Worker> workers_;
};

}  // namespace dunlin
