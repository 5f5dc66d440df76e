// The panel kernels for AVX2 with FMA and F16C: same sums, bit for bit, as gemm_portable.cc.
//
// Few tokens: codes are unpacked in registers as the panel streams by. More: a strip of the panel
// is unpacked once into the first-level cache and all tokens run over it, four at a time.
#include "kernels/gemm_avx2_blocks.h"
#include "kernels/gemm_avx2_plain.h"
#include "kernels/gemm_avx2_rows.h"

namespace dunlin {
namespace {

// Tokens that run over one unpacked strip: their accumulators take 8 KiB.
constexpr std::int64_t kGroupTokens = 128;
// With at most this many tokens unpacking in registers, again for each tile, is cheaper than a
// strip. Eight bits need no unpacking.
template <typename Format>
constexpr std::int64_t kDirectTokens = Format::Bits::kBlockBytes == 512 ? kGroupTokens : 4;
// Bytes of an unpacked strip: half of the first-level cache.
constexpr int kStripBytes = 16384;

// How far prefetching runs ahead while codes are unpacked in registers.
constexpr std::int64_t kAheadBytes = 2048;

// The codes of a strip's blocks, unpacked on the way into registers.
template <typename Format>
struct DirectSource {
  const std::byte* bits;
  DUNLIN_INLINE DirectSource after_first_tile() const { return *this; }
  DUNLIN_INLINE Codes<typename Format::Bits> operator()(int block) const {
    const std::byte* at = bits + block * Format::Bits::kBlockBytes;
    // The hardware's prefetchers stop at pages; this runs ahead of them. Into the second-level
    // cache: the first has too few lines under way at a time to keep memory busy.
    for (int line = 0; line < Format::Bits::kBlockBytes; line += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(at + kAheadBytes + line), _MM_HINT_T1);
    }
    return Codes<typename Format::Bits>{at};
  }
};

// A strip's codes as bytes.
template <typename Format>
struct Strip {
  static constexpr int kBlocks = kStripBytes / UnpackedCodes::kBlockBytes;
  alignas(64) std::byte codes[kStripBytes];

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

  template <int g, int half, typename Packed>
  DUNLIN_INLINE void put(const Packed& source, std::byte* out) {
    store(out + g * 64 + 32 * half, source.template group<g, half>());
  }

  template <int g, typename Packed>
  DUNLIN_INLINE void put_group(const Packed& source, std::byte* out) {
    put<g, 0>(source, out);
    put<g, 1>(source, out);
  }

  void unpack(const std::byte* bits, int num_blocks) {
    const DirectSource<Format> packed{bits};
    for (int block = 0; block < num_blocks; ++block) {
      const auto source = packed(block);
      std::byte* out = codes + block * UnpackedCodes::kBlockBytes;
      put_group<0>(source, out);
      put_group<1>(source, out);
      put_group<2>(source, out);
      put_group<3>(source, out);
      put_group<4>(source, out);
      put_group<5>(source, out);
      put_group<6>(source, out);
      put_group<7>(source, out);
    }
  }

  static DUNLIN_INLINE void store(std::byte* out, __m256i v) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(out), v);
  }
};

template <typename Format, int T, typename Source>
__attribute__((noinline)) void run_tile(const PanelJob& job, Source source,
                                        const StripScales& scales, StripRange range,
                                        std::int64_t token, float (*acc)[16]) {
  const ActivationBlock* x[T];
  for (int t = 0; t < T; ++t) {
    x[t] = job.x.blocks + x_row(job, token + t) * job.x.stride + range.first_block;
  }
  run_strip<Format, T>(source, range.num_blocks, scales, x, acc);
}

// Tiles of four tokens; what is left over goes as 3, 3 + 3, 3 + 2 or 2 rather than leave one token
// alone with all the loads of the strip.
template <typename Format, typename Source>
void run_tiles(const PanelJob& job, Source source, const StripScales& scales, StripRange range,
               std::int64_t first_token, std::int64_t num_tokens, float (*acc)[16]) {
  for (std::int64_t t = 0; t < num_tokens; source = source.after_first_tile()) {
    const std::int64_t left = num_tokens - t, token = first_token + t;
    if (left >= 7 || left == 4) {
      run_tile<Format, 4>(job, source, scales, range, token, acc + t);
      t += 4;
    } else if (left >= 5 || left == 3) {
      run_tile<Format, 3>(job, source, scales, range, token, acc + t);
      t += 3;
    } else if (left == 2) {
      run_tile<Format, 2>(job, source, scales, range, token, acc + t);
      t += 2;
    } else {
      run_tile<Format, 1>(job, source, scales, range, token, acc + t);
      t += 1;
    }
  }
}

DUNLIN_INLINE void clear_rows(float (*acc)[16], std::int64_t num_tokens) {
  for (std::int64_t t = 0; t < num_tokens; ++t) {
    _mm256_store_ps(acc[t], _mm256_setzero_ps());
    _mm256_store_ps(acc[t] + 8, _mm256_setzero_ps());
  }
}

#include "kernels/gemm_panel_loop.inc"

}  // namespace

extern const GemmKernels kAvx2Gemm = kernels();

}  // namespace dunlin
