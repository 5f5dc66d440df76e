// How much attention each cached token gets: what eviction decides by (Zhang et al., "H2O:
// heavy-hitter oracle for efficient generative inference of large language models", 2023; Li et
// al., "SnapKV: LLM knows what you are looking for before generation", 2024).
//
// A query gives each position that it sees the weight of its softmax. A KV head's votes are the
// sum over the queries of its query heads:
//
//   votes[kv head, j] += sum_t sum_{h of the kv head} softmax_j(...)[t, h]
//
// in float, one position by itself, tokens ascending and then heads. So neither chunks, nor
// company, nor threads change a bit.
#pragma once

#include <cstdint>
#include <span>

#include "cpu/isa.h"
#include "cpu/thread_pool.h"
#include "kernels/attention.h"
#include "kernels/paged_kv.h"

namespace dunlin {

struct FloatKernels;

// A sequence of the batch all of whose queries vote.
struct VotingSequence {
  int seq = 0;
  float* votes = nullptr;   // [num_kv_heads, stride]; of positions without a token nothing counts
  std::int64_t stride = 0;  // at least the sequence's length; whole blocks
};

// Behind attention() of the same batch, which told batch.softmax. Only for layers where a query
// sees everything before it.
void attention_votes(ThreadPool& pool, Isa isa, const AttentionParams& params,
                     const AttentionBatch& batch, const PagedKvLayer& layer,
                     std::span<const VotingSequence> voters, AttentionScratch& scratch);

// With a given table.
void attention_votes_with(ThreadPool& pool, const FloatKernels& kernels,
                          const AttentionParams& params, const AttentionBatch& batch,
                          const PagedKvLayer& layer, std::span<const VotingSequence> voters,
                          AttentionScratch& scratch);

}  // namespace dunlin
