// Tiles of tokens over a strip with AVX-512 VNNI, and the panels of plain floats: what the AVX-512
// and the AMX kernels share. Included by per-ISA files only.
#pragma once

#include "kernels/gemm_avx512_blocks.h"

namespace dunlin {
namespace {

// How far prefetching runs ahead while codes are unpacked in registers.
constexpr std::int64_t kAheadBytes = 4096;

template <typename Format>
struct DirectSource {
  static constexpr bool kTiled = false;
  const std::byte* bits;
  DUNLIN_INLINE DirectSource after_first_tile() const { return *this; }
  DUNLIN_INLINE Codes<typename Format::Bits> operator()(int block) const {
    const std::byte* at = bits + block * Format::Bits::kBlockBytes;
    // The hardware's prefetchers stop at pages; this runs ahead of them.
    for (int line = 0; line < Format::Bits::kBlockBytes; line += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(at + kAheadBytes + line), _MM_HINT_T1);
    }
    return {at};
  }
};

// Tokens that run over one unpacked strip: their accumulators take 8 KiB.
constexpr std::int64_t kGroupTokens = 128;

template <int offset, int g, typename Packed>
DUNLIN_INLINE void put_group(const Packed& packed, std::byte* out) {
  __m512i codes = packed.template group<g>();
  if constexpr (offset != 0) {
    codes = _mm512_sub_epi8(codes, _mm512_set1_epi8(static_cast<char>(offset)));
  }
  _mm512_storeu_si512(out + g * 64, codes);
}

// The codes of a strip less an offset, 512 bytes a block.
template <typename Format, int offset>
DUNLIN_INLINE void unpack_codes(const std::byte* bits, int num_blocks, std::byte* out) {
  const DirectSource<Format> packed_at{bits};
  for (int block = 0; block < num_blocks; ++block, out += UnpackedCodes::kBlockBytes) {
    const auto packed = packed_at(block);
    put_group<offset, 0>(packed, out);
    put_group<offset, 1>(packed, out);
    put_group<offset, 2>(packed, out);
    put_group<offset, 3>(packed, out);
    put_group<offset, 4>(packed, out);
    put_group<offset, 5>(packed, out);
    put_group<offset, 6>(packed, out);
    put_group<offset, 7>(packed, out);
  }
}

DUNLIN_INLINE SpacedTokens tokens_in_place(const PanelJob& job, StripRange range,
                                           std::int64_t token) {
  const ActivationBlock* x = job.x.blocks + token * job.x.stride + range.first_block;
  return SpacedTokens(x, job.x.stride * static_cast<std::int64_t>(sizeof(ActivationBlock)));
}

template <typename Format, int T, typename Source>
__attribute__((noinline)) void run_tile(const PanelJob& job, Source source,
                                        const StripScales& scales, StripRange range,
                                        std::int64_t token, float (*acc)[16]) {
  RowTokens<T> x;
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    x.rows[t] = job.x.blocks + x_row(job, token + t) * job.x.stride + range.first_block;
  }
  run_strip<Format>(source, range.num_blocks, scales, x, acc);
}

template <typename Format, typename Source>
__attribute__((noinline)) void run_spaced(Source source, const StripScales& scales, int num_blocks,
                                          SpacedTokens x, float (*acc)[16]) {
  run_strip<Format>(source, num_blocks, scales, x, acc);
}

// Tiles of 16 tokens, where their sums fit the registers, then eight, four, two and one.
template <typename Format, typename Source>
void run_vectors(const PanelJob& job, Source source, const StripScales& scales, StripRange range,
                 std::int64_t first_token, std::int64_t num_tokens, float (*acc)[16]) {
  const bool spaced = !kHasHalves<Format> && job.token_rows == nullptr;
  for (std::int64_t t = 0; t < num_tokens; source = source.after_first_tile()) {
    const std::int64_t left = num_tokens - t, token = first_token + t;
    if (spaced && left >= SpacedTokens::kCount) {
      const SpacedTokens x = tokens_in_place(job, range, token);
      run_spaced<Format>(source, scales, range.num_blocks, x, acc + t);
      t += SpacedTokens::kCount;
    } else if (left >= 8) {
      run_tile<Format, 8>(job, source, scales, range, token, acc + t);
      t += 8;
    } else if (left >= 4) {
      run_tile<Format, 4>(job, source, scales, range, token, acc + t);
      t += 4;
    } else if (left >= 2) {
      run_tile<Format, 2>(job, source, scales, range, token, acc + t);
      t += 2;
    } else {
      run_tile<Format, 1>(job, source, scales, range, token, acc + t);
      t += 1;
    }
  }
}

DUNLIN_INLINE void clear_rows(float (*acc)[16], std::int64_t num_tokens) {
  for (std::int64_t t = 0; t < num_tokens; ++t) _mm512_storeu_ps(acc[t], _mm512_set1_ps(0));
}

struct PlainF32 {
  static constexpr int kBytes = 4;
  static DUNLIN_INLINE __m512 row_values(const std::byte* p) { return _mm512_loadu_ps(p); }
};
struct PlainF16 {
  static constexpr int kBytes = 2;
  static DUNLIN_INLINE __m512 row_values(const std::byte* p) {
    return _mm512_castsi512_ps(join(_mm256_castps_si256(_mm256_cvtph_ps(load128(p))),
                                    _mm256_castps_si256(_mm256_cvtph_ps(load128(p + 16)))));
  }
};
struct PlainBF16 {
  static constexpr int kBytes = 2;
  static DUNLIN_INLINE __m512 row_values(const std::byte* p) {
    const __m512i bits =
        join(_mm256_cvtepu16_epi32(load128(p)), _mm256_cvtepu16_epi32(load128(p + 16)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
  }
};

// One fused chain a row and token over all columns.
template <typename Plain, int T>
void plain_tile(const PanelJob& job, std::int64_t panel, std::int64_t first_token) {
  const std::byte* w = job.panels + panel * job.panel_bytes;
  const std::int64_t cols = job.cols;
  const float* x[T];
  __m512 sums[T];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    x[t] = job.x.values + x_row(job, first_token + t) * job.x.stride * kBlockCols;
    sums[t] = _mm512_set1_ps(0);
  }
  for (std::int64_t k = 0; k < cols; ++k, w += 16 * Plain::kBytes) {
    _mm_prefetch(reinterpret_cast<const char*>(w + 2048), _MM_HINT_T1);
    const __m512 values = Plain::row_values(w);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      sums[t] = _mm512_fmadd_ps(values, _mm512_set1_ps(x[t][k]), sums[t]);
    }
  }
  alignas(64) float acc[T][16];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) _mm512_storeu_ps(acc[t], sums[t]);
  store_rows(job, panel, first_token, T, acc);
}

template <typename Plain>
void plain_panels(const PanelJob& job) {
  for (std::int64_t panel = 0; panel < job.num_panels; ++panel) {
    std::int64_t t = 0;
    for (; t + 8 <= job.num_tokens; t += 8) plain_tile<Plain, 8>(job, panel, t);
    const std::int64_t left = job.num_tokens - t;
    if ((left & 4) != 0) plain_tile<Plain, 4>(job, panel, t);
    if ((left & 2) != 0) plain_tile<Plain, 2>(job, panel, t + (left & 4));
    if ((left & 1) != 0) plain_tile<Plain, 1>(job, panel, t + (left & 6));
  }
}

}  // namespace
}  // namespace dunlin
