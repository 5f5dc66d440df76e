// The float operations of a step as a table of functions, one table an instruction set. The
// arithmetic is written once over a vector type (float_kernels.inc, attention_tile.inc); each
// per-ISA file includes it with its own vectors (vec_*.h). The reference is separate plain loops
// in double. Internal to kernels/ and its tests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/isa.h"
#include "kernels/paged_kv.h"

namespace dunlin {

// Positions a partial (kAttentionSplit of kernels/attention.h).
inline constexpr int kTileSplit = 256;
// Row stride of a tile's scores, in floats: a split of 256 and a cache line more, since rows a
// multiple of 4 KiB / 4 apart would share four sets of a 32 KiB first-level cache.
inline constexpr int kScoreStride = kTileSplit + 16;
// Query rows (tokens x heads of one KV head) of a tile: enough to repay the conversion of a K/V
// block many times, few enough that scores, queries and outputs stay in the second-level cache.
inline constexpr int kMaxTileRows = 84;

// Some neighbouring KV heads, each with as many of its query rows: all of the first head's, then
// all of the next one's.
struct AttentionTile {
  const PagedKvLayer* layer;
  const std::int32_t* blocks;  // the sequence's block table
  int kv_head;                 // the first
  int num_kv_heads;
  int num_rows;                 // of each head; kMaxTileRows of all of them at most
  const float* q;               // [head_dim_k, kMaxTileRows] times scale * log2(e)
  const std::int32_t* begin;    // [rows of all heads] first position that the row sees
  const std::int32_t* end;      // as many; one past the last
  std::int32_t tile_begin;      // least of begin
  std::int32_t tile_end;        // greatest of end
  float softcap;                // cap * log2(e), or 0
  std::int64_t o_stride;        // head_dim_v rounded up to 16
  float* scores;                // scratch [rows of all heads, kScoreStride]
  std::int8_t* q_codes;         // [rows of all heads, q_codes_stride], by prepare_queries
  std::int64_t q_codes_stride;  // attention_codes_stride(head_dim_k)
  float* widened;               // scratch, max(kKvBlockSize * head_dim_k, kTileSplit * o_stride)
};

// Bytes of a query row's codes with their sums and scale, for every format.
inline constexpr std::int64_t attention_codes_stride(int head_dim_k) {
  const std::int64_t channels = (head_dim_k + 15) / 16 * 16;
  return (2 * channels + channels / 4 + 127) / 64 * 64 + 64;
}

struct FloatKernels {
  void (*rms_norm)(const float* x, const float* weight, float eps, std::int64_t n, float* y);
  void (*silu_mul)(const float* gate, const float* up, std::int64_t n, float* y);
  void (*gelu_tanh_mul)(const float* gate, const float* up, std::int64_t n, float* y);
  void (*gelu_erf_mul)(const float* gate, const float* up, std::int64_t n, float* y);
  void (*clamped_swiglu)(const float* gate, const float* up, std::int64_t n, float* y);
  void (*softcap)(float cap, std::int64_t n, float* x);
  // y_i = exp(x_i - shift), x_i <= shift.
  void (*exp_below)(const float* x, float shift, std::int64_t n, float* y);
  // Arguments of kernels/kv_write.h.
  void (*kv_write)(const PagedKvLayer& layer, std::int64_t slot, const float* k, const float* v);
  // The greatest of the products of `bounds` [n], halves, with each row of q [num_rows, n]; n is a
  // multiple of 16.
  float (*page_score)(const std::uint16_t* bounds, const float* q, int num_rows, std::int64_t n);

  // Makes q_codes of a tile's q; null where products are of floats.
  void (*prepare_queries)(const AttentionTile& tile);
  // The partial of positions [256 split, 256 split + 256) for the rows of all heads: m [rows] the
  // greatest score in log2 units (-infinity: the row sees nothing here), l [rows] the sum of
  // 2^(score - m), o [rows, o_stride] the values so weighted. Null in the reference, which has no
  // partials.
  void (*attend_split)(const AttentionTile& tile, std::int64_t split, float* m, float* l, float* o);
  // Adds to votes [256], those of the split's positions, what each row gives them: row by row,
  // ascending, 2^(score - m) * share to each that the row sees. A tile of one KV head.
  void (*vote_split)(const AttentionTile& tile, std::int64_t split, const float* m,
                     const float* share, float* votes);
  // (m, l, o) of one row takes in a partial of the same row.
  void (*merge_partial)(std::int64_t o_stride, float part_m, float part_l, const float* part_o,
                        float* m, float* l, float* o);
  // out [head_dim_v] = o / (l + 2^(sink - m)); sink in log2 units, -infinity for none.
  void (*finish_row)(std::int64_t head_dim_v, float sink, float m, float l, const float* o,
                     float* out);
};

// The table of an instruction set. It must be one that this machine has.
const FloatKernels& float_kernels(Isa isa);

const FloatKernels& reference_float_kernels();
const FloatKernels& reference_q8_float_kernels();
const FloatKernels& portable_float_kernels();
#if defined(__x86_64__)
const FloatKernels& avx2_float_kernels();
const FloatKernels& avx512_float_kernels();
const FloatKernels& simde_avx512_float_kernels();  // the AVX-512 text over SIMDe, in tests only
#elif defined(__aarch64__)
const FloatKernels& neon_float_kernels();
#endif

}  // namespace dunlin
