// How a call of attention() is cut into tiles, pieces and chunks, and the memory that goes with
// it. Nothing here changes a result: the arithmetic is fixed by positions (attention.h). Internal
// to kernels/ and its tests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention.h"
#include "kernels/float_kernels.h"
#include "kernels/shared_prefixes.h"
#include "tensor/buffer.h"

namespace dunlin {

// Positions that a query sees.
struct AttentionRange {
  std::int32_t begin, end;
};
AttentionRange visible_range(const AttentionParams& params, const AttentionBatch& batch,
                             const PagedKvLayer& layer, int seq, int token);

// Rows of a kernel's outputs are padded to whole vectors of every instruction set.
inline std::int64_t attention_o_stride(int head_dim_v) { return (head_dim_v + 15) / 16 * 16; }

// Some tokens of one sequence with some query heads of one KV head, or of several neighbouring
// ones, which a worker then reads together. Or those of members of a SharedPrefixes::Group over
// their prefix, a token each; its rows' (m, l, o) are where the members' own tiles begin.
struct AttentionPlanTile {
  int seq;           // whose blocks are read
  int first_member;  // -1: of one sequence
  int kv_head;
  int num_kv_heads;
  int first_head;  // within the KV head's query heads
  int num_heads;
  int first_token;
  int num_tokens;
  std::int32_t begin, end;   // positions that any of them sees
  std::int32_t num_sinks;    // positions [0, num_sinks) that its last token sees besides
  std::int64_t begin_row;    // of head 0 in the states of prefixes; -1: begins with nothing
  bool is_selected;          // one token, over its selected blocks
  std::int64_t partial_row;  // -1: runs in one piece; else where its partials begin

  int rows_of_kv_head() const { return num_tokens * num_heads; }
  int num_rows() const { return rows_of_kv_head() * num_kv_heads; }
  std::int64_t first_split() const { return begin / kAttentionSplit; }
  std::int64_t end_split() const { return (end - 1) / kAttentionSplit + 1; }
};

// A tile's splits [first_split, end_split).
struct AttentionPlanWork {
  std::int32_t tile;
  std::int32_t first_split, end_split;
};

// Tiles that need nothing of each other, cut for the threads.
struct AttentionStage {
  std::vector<AttentionPlanTile> tiles;
  std::vector<AttentionPlanWork> works;
  std::vector<std::int32_t> chunk_begin;  // in works, and their end
  std::vector<std::int32_t> divided;      // tiles to merge

  int num_chunks() const { return static_cast<int>(chunk_begin.size()) - 1; }
  std::span<const AttentionPlanWork> chunk(int i) const;
};

// Float arrays of one worker.
struct AttentionWorkerScratch {
  float* q;              // [head_dim_k, kMaxTileRows]
  float* scores;         // [kMaxTileRows, kScoreStride]
  float* part_o;         // [kMaxTileRows, o_stride]
  float* o;              // [kMaxTileRows, o_stride]
  std::int8_t* q_codes;  // [kMaxTileRows, attention_codes_stride(head_dim_k)]
  float* widened;        // max(kKvBlockSize * head_dim_k, kTileSplit * o_stride)
};

// A query as row `row` of scratch.q: turned as the keys are stored, times `scale`.
void gather_query(const PagedKvLayer& layer, float scale, const float* q, int row,
                  const AttentionWorkerScratch& scratch);

struct AttentionScratch::Plan {
 public:
  // Elements of the arrays and bytes of the buffers that reserve() makes.
  struct Sizes {
    std::size_t tiles = 0, divided = 0, works = 0;
    std::int64_t worker_floats = 0;
    std::size_t workers_bytes = 0, partial_ml_bytes = 0, partial_o_bytes = 0;

    std::int64_t all_bytes() const;
  };
  static Sizes sizes(int num_threads, std::int64_t max_tokens, int num_heads, int num_kv_heads,
                     int head_dim_k, int head_dim_v);
  void reserve(int num_threads, std::int64_t max_tokens, int num_heads, int num_kv_heads,
               int head_dim_k, int head_dim_v);
  void build(const AttentionParams& params, const AttentionBatch& batch, const PagedKvLayer& layer,
             int num_threads);

  const SharedPrefixes& shared() const { return shared_; }
  const AttentionStage& prefixes() const { return prefixes_; }  // to run first
  const AttentionStage& own() const { return own_; }

  AttentionWorkerScratch worker(int idx);
  // Rows of partials; the first num_members * num_heads are the states of prefixes.
  float* partial_m() { return partial_ml_.as<float>(); }
  float* partial_l() { return partial_m() + kMaxPartialRows; }
  float* partial_o() { return partial_o_.as<float>(); }

 private:
  // Rows x splits that a call may keep unmerged: 32 heads at 128 Ki positions. Beyond it tiles
  // run in one piece. Untouched pages cost nothing.
  static constexpr std::int64_t kMaxPartialRows = 16384;

  void add_prefix_tiles(const AttentionParams& params, const PagedKvLayer& layer);
  void add_tiles(const AttentionParams& params, const AttentionBatch& batch,
                 const PagedKvLayer& layer, int seq, bool join_kv_heads);
  void add_selected_tiles(const AttentionParams& params, const AttentionBatch& batch,
                          const PagedKvLayer& layer, int seq, int token);
  void cut_into_works(AttentionStage& stage, std::int64_t row_cost, int num_threads);

  SharedPrefixes shared_;
  AttentionStage prefixes_, own_;
  std::int64_t num_partial_rows_ = 0;  // in use
  std::int64_t max_tokens_ = 0;
  int num_workers_ = 0;
  int head_dim_k_ = 0;
  std::int64_t o_stride_ = 0;
  std::int64_t worker_floats_ = 0;
  Buffer workers_, partial_ml_, partial_o_;
};

// attention() with a given table.
void attention_with(ThreadPool& pool, const FloatKernels& kernels, const AttentionParams& params,
                    const AttentionBatch& batch, const PagedKvLayer& layer, float* out,
                    AttentionScratch& scratch);

// Plain loops in double over all positions, one softmax a query: what the others are held against.
void reference_attention(ThreadPool& pool, const AttentionParams& params,
                         const AttentionBatch& batch, const PagedKvLayer& layer, float* out,
                         AttentionScratch::Plan& plan);

}  // namespace dunlin
