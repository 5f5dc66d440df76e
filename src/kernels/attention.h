// Attention over the paged KV cache, for any mix of prefill, decode and verification.
//
//   out[t, h] = sum_j softmax_j(cap(scale * q[t, h] . k[j, h'])) v[j, h'],  h' = h / (heads / kv
//   heads)
//
// over the positions j that the query at position p may see: j <= p (causal), j > p - window.
//
// Where blocks are selected for a query (AttentionBatch::selection), positions are those in the row
// of selected blocks, for the splits too.
//
// Of a sequence with kept tokens (KeptTokens) a query sees the newest ones, and besides the first
// few, with a query of its own for these: rotated as if what lies between were not there. They make
// a partial before all others.
//
// One arithmetic per instruction set, whatever the number of queries, the chunking of a prompt,
// the batch around a sequence and the number of threads: each aligned split of 256 absolute
// positions makes a partial (m, l, o) with a fixed inner order, and the splits are merged in
// ascending order (the split softmax of Dao et al., "Flash-Decoding for long-context inference",
// 2023, with a split size that does not adapt). K and V are read from storage only. A KV head is
// read once for all of its query heads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cpu/isa.h"
#include "cpu/thread_pool.h"
#include "kernels/paged_kv.h"
#include "tensor/buffer.h"

namespace dunlin {

inline constexpr int kAttentionSplit = 256;  // positions a partial

struct AttentionParams {
  int num_heads = 0;             // a multiple of the layer's num_kv_heads
  float scale = 1;               // of q . k, usually 1 / sqrt(head_dim_k)
  float softcap = 0;             // 0: none; else cap * tanh(score / cap)
  bool causal = true;            // false: a query sees all of its sequence (within the window)
  const float* sinks = nullptr;  // [num_heads] or null: a logit that joins the sum, without a value
};

// Where queries of layers without a window see less than everything before them.
struct KeptTokens {
  std::span<const std::int32_t> first;      // [num_tokens] the first one seen; 0: all
  std::span<const std::int32_t> num_sinks;  // [num_seqs] seen besides, where `first` isn't 0
  const float* sink_q = nullptr;  // [num_tokens, num_heads, head_dim_k], read where both aren't 0

  bool is_empty() const { return first.empty(); }
};

class PageSelection;

// Of a query's softmax: the greatest score, in log2 units, and the sum of 2^(score - most), a sink
// counted in. A position weighs 2^(its score - most) / sum.
struct SoftmaxState {
  float most = 0, sum = 0;
};

struct AttentionBatch {
  const float* q = nullptr;                 // [num_tokens, num_heads, head_dim_k], after RoPE
  std::int64_t q_stride = 0;                // elements from a token's queries to the next token's
  std::span<const std::int32_t> positions;  // [num_tokens] absolute
  std::span<const std::int32_t> query_start_loc;  // [num_seqs + 1]
  std::span<const std::int32_t> seq_lens;         // [num_seqs] tokens in the cache, this step's too
  std::span<const std::int32_t> block_tables;     // [num_seqs, max_blocks_per_seq]; -1: not there
  std::int64_t max_blocks_per_seq = 0;
  KeptTokens kept{};  // empty: everything
  // Not null: queries that read only some blocks (page_selection.h), each by itself for a KV head.
  const PageSelection* selection = nullptr;
  // [num_tokens, num_heads] or null: told what became of each softmax, for attention_votes.h. The
  // reference tells nothing.
  SoftmaxState* softmax = nullptr;

  // The first token that the query sees but for sinks, and the number of these, for a layer without
  // a window.
  std::int32_t first_kept(int token) const {
    return kept.is_empty() ? 0 : kept.first[static_cast<std::size_t>(token)];
  }
  std::int32_t num_sinks(int seq, int token) const {
    return first_kept(token) == 0 ? 0 : kept.num_sinks[static_cast<std::size_t>(seq)];
  }
};

// The memory of attention(), reserved beforehand so that the call allocates nothing. One suffices
// for all layers of a model.
class AttentionScratch {
 public:
  AttentionScratch();
  ~AttentionScratch();
  AttentionScratch(AttentionScratch&&) noexcept;
  AttentionScratch& operator=(AttentionScratch&&) noexcept;

  // The largest that a call will have; head dimensions of the model's largest layer.
  void reserve(int num_threads, std::int64_t max_tokens, std::int64_t max_seqs, int num_heads,
               int num_kv_heads, int head_dim_k, int head_dim_v);

  struct Plan;
  Plan& plan() { return *plan_; }

 private:
  std::unique_ptr<Plan> plan_;
};

// out [num_tokens, num_heads, head_dim_v]. Positions of a sequence ascend by one within the batch.
// Table entries that no query can see (behind the window, between sinks and kept tokens) are not
// looked at.
void attention(ThreadPool& pool, Isa isa, const AttentionParams& params,
               const AttentionBatch& batch, const PagedKvLayer& layer, float* out,
               AttentionScratch& scratch);

}  // namespace dunlin
