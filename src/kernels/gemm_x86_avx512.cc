// The panel kernels for AVX-512 VNNI: same sums, bit for bit, as gemm_portable.cc. Also built over
// SIMDe into the test program (gemm_simde_avx512.cc), for machines without AVX-512.
#include "kernels/gemm_avx512_blocks.h"

namespace dunlin {
namespace {

// With at most this many tokens, one or two tiles, codes are unpacked in registers; with more a
// strip is unpacked once into the first-level cache.
template <typename Format>
constexpr std::int64_t kDirectTokens = 8;
// Tokens that run over one unpacked strip: their accumulators take 8 KiB.
constexpr std::int64_t kGroupTokens = 128;

template <typename Format>
struct DirectSource {
  const std::byte* bits;
  DUNLIN_INLINE DirectSource after_first_tile() const { return *this; }
  DUNLIN_INLINE Codes<typename Format::Bits> operator()(int block) const {
    const std::byte* at = bits + block * Format::Bits::kBlockBytes;
    // The hardware's prefetchers stop at pages; this runs ahead of them.
    for (int line = 0; line < Format::Bits::kBlockBytes; line += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(at + 2048 + line), _MM_HINT_T1);
    }
    return {at};
  }
};

template <typename Format>
struct Strip {
  static constexpr int kBlocks = kStripBlocks;
  alignas(64) std::byte codes[kBlocks * UnpackedCodes::kBlockBytes];

  struct Source {
    const std::byte* codes;
    const std::byte* next;  // packed codes to bring closer meanwhile, or null
    DUNLIN_INLINE Source after_first_tile() const { return {codes, nullptr}; }
    DUNLIN_INLINE UnpackedCodes operator()(int block) const {
      if (next != nullptr) {
        for (int line = 0; line < Format::Bits::kBlockBytes; line += 64) {
          const std::byte* at = next + block * Format::Bits::kBlockBytes + line;
          _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T1);
        }
      }
      return {codes + block * UnpackedCodes::kBlockBytes};
    }
  };

  template <int g, typename Packed>
  static DUNLIN_INLINE void put(const Packed& packed, std::byte* out) {
    _mm512_storeu_si512(out + g * 64, packed.template group<g>());
  }

  void unpack(const std::byte* bits, int num_blocks) {
    const DirectSource<Format> packed_at{bits};
    for (int block = 0; block < num_blocks; ++block) {
      const auto packed = packed_at(block);
      std::byte* out = codes + block * UnpackedCodes::kBlockBytes;
      put<0>(packed, out);
      put<1>(packed, out);
      put<2>(packed, out);
      put<3>(packed, out);
      put<4>(packed, out);
      put<5>(packed, out);
      put<6>(packed, out);
      put<7>(packed, out);
    }
  }
};

template <typename Format, int T, typename Source>
__attribute__((noinline)) void run_tile(const PanelJob& job, Source source,
                                        const StripScales& scales, StripRange range,
                                        std::int64_t token, float (*acc)[16]) {
  const ActivationBlock* x[T];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    x[t] = job.x.blocks + x_row(job, token + t) * job.x.num_blocks + range.first_block;
  }
  run_strip<Format, T>(source, range.num_blocks, scales, x, acc);
}

// Tiles of eight tokens, then four, two and one.
template <typename Format, typename Source>
void run_tiles(const PanelJob& job, Source source, const StripScales& scales, StripRange range,
               std::int64_t first_token, std::int64_t num_tokens, float (*acc)[16]) {
  for (std::int64_t t = 0; t < num_tokens; source = source.after_first_tile()) {
    const std::int64_t left = num_tokens - t, token = first_token + t;
    if (left >= 8) {
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
    x[t] = job.x.values + x_row(job, first_token + t) * job.x.num_blocks * kBlockCols;
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

#include "kernels/gemm_panel_loop.inc"

}  // namespace

#ifdef DUNLIN_SIMDE
extern const GemmKernels kSimdeAvx512Gemm = kernels();
#else
extern const GemmKernels kAvx512Gemm = kernels();
#endif

}  // namespace dunlin
