// Sequences of random keys and values in a paged cache with scattered blocks, and batches over
// them, for the tests and the benchmark of attention.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/attention_plan.h"
#include "kernels/attention_votes.h"
#include "kernels/page_selection.h"

namespace dunlin {

enum class AttentionValues {
  kOwn,     // have nothing to do with the keys
  kCopied,  // the first dim_v dimensions of the keys, stored once more
  kInKeys,  // the same, not stored
};

inline std::vector<KvFormat> all_kv_formats() {
  std::vector<KvFormat> formats;
  for (int i = 0; i < kNumKvFormats; ++i) formats.push_back(static_cast<KvFormat>(i));
  return formats;
}

struct AttentionShape {
  int heads = 4, kv_heads = 2, dim_k = 64, dim_v = 64;
  KvFormats formats = KvFormat::kF16;
  int window = 0;
  AttentionValues values = AttentionValues::kOwn;
};

// Some queries of a sequence: tokens [first, first + count).
struct QuerySpan {
  int seq, first, count;
};

class AttentionFixture {
 public:
  // Blocks of all sequences are interleaved in the arena, so that none is contiguous.
  AttentionFixture(const AttentionShape& shape, std::vector<int> lens)
      : shape_(shape), lens_(lens) {
    int longest = 0, num_blocks = 0;
    for (int len : lens_) {
      longest = std::max(longest, len);
      num_blocks += (len + kKvBlockSize - 1) / kKvBlockSize;
    }
    max_blocks_ = (longest + kKvBlockSize - 1) / kKvBlockSize;
    tables_.assign(lens_.size() * static_cast<std::size_t>(max_blocks_), -1);
    int next = num_blocks - 1;  // block 0 is used by the last of all
    for (int b = 0; b < max_blocks_; ++b)
      for (std::size_t s = 0; s < lens_.size(); ++s)
        if (b * kKvBlockSize < lens_[s]) entry(static_cast<int>(s), b) = next--;

    const bool in_keys = shape.values == AttentionValues::kInKeys;
    const KvPart keys =
        key_part(shape.formats.k, shape.kv_heads, shape.dim_k, in_keys ? shape.dim_v : 0);
    const KvPart values = value_part(shape.formats.v, shape.kv_heads, shape.dim_v);
    const std::int64_t k_bytes = keys.block_bytes, v_bytes = in_keys ? 0 : values.block_bytes;
    layer_ = {.base = nullptr,
              .block_stride = 2 * (k_bytes + v_bytes),
              .k_offset = k_bytes + v_bytes,  // the second layer of a block
              .v_offset = 2 * k_bytes + v_bytes,
              .num_kv_heads = shape.kv_heads,
              .head_dim_k = shape.dim_k,
              .head_dim_v = shape.dim_v,
              .k = keys,
              .v = values,
              .values_in_keys = in_keys,
              .window = shape.window};
    arena_ = Buffer(static_cast<std::size_t>(num_blocks * layer_.block_stride));
    layer_.base = arena_.data();
    // What nobody wrote must not matter: halves and floats of all ones are NaN.
    std::memset(arena_.data(), 0xff, arena_.size());
    for (std::size_t s = 0; s < lens_.size(); ++s)
      for (int t = 0; t < lens_[s]; ++t) write(static_cast<int>(s), t);
  }

  std::int32_t& entry(int seq, int block) {
    return tables_[static_cast<std::size_t>(seq * max_blocks_ + block)];
  }
  const AttentionShape& shape() const { return shape_; }
  const PagedKvLayer& layer() const { return layer_; }
  std::byte* block(int seq, int b) { return arena_.data() + entry(seq, b) * layer_.block_stride; }

  // Uniform in [-2, 2): a linear congruential generator, since philox takes longer than attention.
  static std::vector<float> row(std::uint64_t kind, int seq, int token, int n) {
    std::uint64_t state = (kind * 1000 + static_cast<std::uint64_t>(seq)) * 0x9e3779b97f4a7c15u +
                          static_cast<std::uint64_t>(token) * 0xbf58476d1ce4e5b9u;
    std::vector<float> x(static_cast<std::size_t>(n));
    for (float& value : x) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      value = static_cast<float>(state >> 40) * 0x1p-22f - 2;
    }
    return x;
  }
  std::vector<float> query(int seq, int token) const {
    return row(1, seq, token, shape_.heads * shape_.dim_k);
  }
  std::vector<float> sink_query(int seq, int token) const {
    return row(4, seq, token, shape_.heads * shape_.dim_k);
  }

  // From now on queries of this sequence see its first num_sinks tokens and the newest `window`
  // ones, from a block's first one on.
  void keep(int seq, int num_sinks, int window) {
    kept_.resize(lens_.size());
    kept_[static_cast<std::size_t>(seq)] = {num_sinks, window};
  }
  int num_sinks(int seq) const {
    return kept_.empty() ? 0 : kept_[static_cast<std::size_t>(seq)].num_sinks;
  }
  int first_kept(int seq, int token) const {
    if (kept_.empty() || kept_[static_cast<std::size_t>(seq)].window == 0) return 0;
    const int behind = token + 1 - kept_[static_cast<std::size_t>(seq)].window;
    const int first = std::max(0, behind + kKvBlockSize - 1) / kKvBlockSize * kKvBlockSize;
    return first > num_sinks(seq) ? first : 0;
  }

  AttentionParams params() const {
    AttentionParams p;
    p.num_heads = shape_.heads;
    p.scale = 1.0f / std::sqrt(static_cast<float>(shape_.dim_k));
    return p;
  }

  // From now on queries from this token on read num_pages blocks at most.
  void select(int num_pages, int from_token) {
    num_pages_ = num_pages;
    select_from_ = from_token;
  }
  const PageSelection& selection() const { return selection_; }

  // From now on all queries vote; their sums so far, [kv_heads, whole blocks] of a sequence.
  void count_votes() { votes_.resize(lens_.size()); }
  std::vector<float>& votes(int seq) { return votes_[static_cast<std::size_t>(seq)]; }

  // Rows of all spans' queries, one after another, [count * heads * dim_v].
  std::vector<float> run(const FloatKernels& kernels, const AttentionParams& params,
                         const std::vector<QuerySpan>& spans, ThreadPool& pool) {
    std::vector<float> q;
    std::vector<float> sink_q;
    std::vector<std::int32_t> positions, starts = {0}, lens, tables, first, sinks;
    budgets_.clear();
    for (const QuerySpan& span : spans) {
      for (int t = span.first; t < span.first + span.count; ++t) {
        const std::vector<float> x = query(span.seq, t);
        q.insert(q.end(), x.begin(), x.end());
        q.insert(q.end(), 3, std::numeric_limits<float>::quiet_NaN());  // stride beyond the row
        positions.push_back(t);
        const bool is_sparse = t >= select_from_ && t / kKvBlockSize + 1 > num_pages_;
        budgets_.push_back(is_sparse ? num_pages_ : 0);
        first.push_back(first_kept(span.seq, t));
        std::vector<float> y(x.size(), std::numeric_limits<float>::quiet_NaN());
        if (first.back() > 0) y = sink_query(span.seq, t);
        sink_q.insert(sink_q.end(), y.begin(), y.end());
      }
      sinks.push_back(num_sinks(span.seq));
      starts.push_back(static_cast<std::int32_t>(positions.size()));
      lens.push_back(params.causal ? span.first + span.count
                                   : lens_[static_cast<std::size_t>(span.seq)]);
      const auto table = tables_.begin() + span.seq * max_blocks_;
      tables.insert(tables.end(), table, table + max_blocks_);
      if (shape_.window > 0) continue;
      // What none of them sees is not there.
      const int end = first_kept(span.seq, span.first) / kKvBlockSize;
      for (int b = (sinks.back() + kKvBlockSize - 1) / kKvBlockSize; b < end; ++b)
        tables[tables.size() - static_cast<std::size_t>(max_blocks_ - b)] = -1;
    }
    AttentionBatch batch;
    batch.q = q.data();
    batch.q_stride = shape_.heads * shape_.dim_k + 3;
    batch.positions = positions;
    batch.query_start_loc = starts;
    batch.seq_lens = lens;
    batch.block_tables = tables;
    batch.max_blocks_per_seq = max_blocks_;
    if (!kept_.empty()) batch.kept = {first, sinks, sink_q.data()};
    scratch_.reserve(pool.num_threads(), static_cast<std::int64_t>(positions.size()),
                     static_cast<std::int64_t>(spans.size()), shape_.heads, shape_.kv_heads,
                     shape_.dim_k, shape_.dim_v);
    if (num_pages_ > 0) {
      const auto num_blocks =
          static_cast<std::size_t>(arena_.size()) / static_cast<std::size_t>(layer_.block_stride);
      bounds_.resize(num_blocks *
                     static_cast<std::size_t>(shape_.kv_heads * PageBounds::stride(shape_.dim_k)));
      bounds_known_.resize(num_blocks);
      selection_.reserve(pool.num_threads(), static_cast<std::int64_t>(positions.size()),
                         shape_.kv_heads, shape_.dim_k, shape_.heads);
      selection_.select_with(pool, kernels, params, batch, layer_, budgets_,
                             {bounds_.data(), bounds_known_.data()});
      batch.selection = &selection_;
    }
    std::vector<float> out(positions.size() * static_cast<std::size_t>(shape_.heads * shape_.dim_v),
                           -777.0f);
    std::vector<SoftmaxState> softmax;
    if (!votes_.empty()) {
      softmax.resize(positions.size() * static_cast<std::size_t>(shape_.heads));
      batch.softmax = softmax.data();
    }
    attention_with(pool, kernels, params, batch, layer_, out.data(), scratch_);
    if (!votes_.empty()) vote(kernels, params, batch, spans, pool);
    return out;
  }
  AttentionScratch& scratch() { return scratch_; }

 private:
  void vote(const FloatKernels& kernels, const AttentionParams& params, const AttentionBatch& batch,
            const std::vector<QuerySpan>& spans, ThreadPool& pool) {
    std::vector<VotingSequence> voters;
    const std::int64_t stride = std::int64_t{max_blocks_} * kKvBlockSize;
    for (std::size_t s = 0; s < spans.size(); ++s) {
      std::vector<float>& sums = votes(spans[s].seq);
      sums.resize(static_cast<std::size_t>(shape_.kv_heads * stride));
      voters.push_back({static_cast<int>(s), sums.data(), stride});
    }
    attention_votes_with(pool, kernels, params, batch, layer_, voters, scratch_);
  }
  void write(int seq, int token) {
    const std::vector<float> k = row(2, seq, token, shape_.kv_heads * shape_.dim_k);
    std::vector<float> v = row(3, seq, token, shape_.kv_heads * shape_.dim_v);
    if (shape_.values == AttentionValues::kCopied) {
      for (int h = 0; h < shape_.kv_heads; ++h)
        std::copy_n(k.begin() + h * shape_.dim_k, shape_.dim_v, v.begin() + h * shape_.dim_v);
    }
    const std::int64_t slot =
        std::int64_t{entry(seq, token / kKvBlockSize)} * kKvBlockSize + token % kKvBlockSize;
    portable_float_kernels().kv_write(layer_, slot, k.data(), v.data());
  }

  struct Kept {
    int num_sinks = 0, window = 0;  // 0: everything
  };

  AttentionShape shape_;
  std::vector<int> lens_;
  std::vector<Kept> kept_;  // empty, or one a sequence
  int max_blocks_ = 0;
  std::vector<std::int32_t> tables_;
  PagedKvLayer layer_;
  Buffer arena_;
  AttentionScratch scratch_;
  int num_pages_ = 0, select_from_ = 0;  // 0 pages: all are read
  std::vector<std::int32_t> budgets_;
  std::vector<std::uint16_t> bounds_;
  std::vector<std::uint8_t> bounds_known_;
  PageSelection selection_;
  std::vector<std::vector<float>> votes_;  // empty, or one a sequence
};

// Tokens first .. first + count - 1 of sequence 0, one thread, in chunks of 37 and of 1 between
// tokens of sequences 1 (of 891 or more) and 2 (of 659 or more): their outputs side by side.
inline std::vector<float> run_chunks_in_company(AttentionFixture& fixture,
                                                const FloatKernels& kernels, int first, int count) {
  ThreadPool single(1);
  const auto row_size = static_cast<std::ptrdiff_t>(fixture.shape().heads) * fixture.shape().dim_v;
  std::vector<float> parts(static_cast<std::size_t>(row_size * count));
  const int end = first + count;
  for (int t = first; t < end;) {
    const int size = std::min(t % 3 == 0 ? 1 : 37, end - t);
    const std::vector<QuerySpan> spans = {{1, 888, 3}, {0, t, size}, {2, 650, 9}};
    const auto got = fixture.run(kernels, fixture.params(), spans, single);
    std::copy_n(got.begin() + 3 * row_size, row_size * size,
                parts.begin() + row_size * (t - first));
    t += size;
  }
  return parts;
}

}  // namespace dunlin
