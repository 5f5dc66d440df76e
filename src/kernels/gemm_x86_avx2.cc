// The panel kernels for AVX2 with FMA and F16C: same sums, bit for bit, as gemm_portable.cc.
//
// Few tokens: codes are unpacked in registers as the panel streams by. More: a strip of the panel
// is unpacked once into the first-level cache and all tokens run over it, four at a time.
#include "kernels/gemm_avx2_blocks.h"
#include "kernels/gemm_avx2_rows.h"

namespace dunlin {
namespace {

// With at most this many tokens unpacking in registers is cheaper.
constexpr std::int64_t kDirectTokens = 4;
// Tokens that run over one unpacked strip: their accumulators take 8 KiB.
constexpr std::int64_t kGroupTokens = 128;
// Bytes of an unpacked strip: half of the first-level cache.
constexpr int kStripBytes = 16384;

template <int T>
DUNLIN_INLINE TokenTile<T> token_tile(const PanelJob& job, std::int64_t first, std::int64_t block) {
  TokenTile<T> tile;
  for (int t = 0; t < T; ++t) {
    const std::int64_t at = x_row(job, first + t) * job.x.num_blocks + block;
    tile.x[t] = job.x.blocks + at;
    tile.wide[t] = job.x.wide + at * kBlockCols;
  }
  return tile;
}

template <typename Format>
struct DirectSource {
  const std::byte* bits;
  DUNLIN_INLINE auto operator()(int block) const {
    const std::byte* at = bits + block * Format::Bits::kBlockBytes;
    // The hardware's prefetchers stop at pages; this runs ahead of them.
    for (int line = 0; line < Format::Bits::kBlockBytes; line += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(at + 2048 + line), _MM_HINT_T0);
    }
    const Codes<typename Format::Bits> codes{at};
    if constexpr (Format::kSigned) {
      return SplitPairs<Codes<typename Format::Bits>>{codes};
    } else {
      return codes;
    }
  }
};

template <typename Format, int T>
void direct_panel(const PanelJob& job, std::int64_t panel) {
  using Scales = typename Format::Scales;
  const std::int64_t num_blocks = job.cols / kBlockCols;
  const std::byte* records = job.panels + panel * job.panel_bytes;
  const std::byte* bits = records + PanelShape<Format>::scales_bytes(num_blocks);
  alignas(64) float acc[T][16] = {};
  StripScales scales;
  for (std::int64_t first = 0; first < num_blocks; first += kStripBlocks) {
    const std::int64_t left = num_blocks - first;
    const int count = left < kStripBlocks ? static_cast<int>(left) : kStripBlocks;
    unpack_scales<Scales>(records, first, count, scales);
    run_strip<Format, T>(DirectSource<Format>{bits + first * Format::Bits::kBlockBytes}, count,
                         scales, token_tile<T>(job, 0, first), acc);
  }
  store_rows(job, panel, 0, T, acc);
}

// A strip's codes as bytes or int16 pairs.
template <typename Format>
struct Strip {
  using Unpacked = typename Choose<Format::kSigned, UnpackedPairs, UnpackedCodes>::Type;
  static constexpr int kBlocks = kStripBytes / Unpacked::kBlockBytes;
  alignas(64) std::byte codes[kStripBytes];

  struct Source {
    const std::byte* codes;
    DUNLIN_INLINE Unpacked operator()(int block) const {
      return {codes + block * Unpacked::kBlockBytes};
    }
  };

  template <int g, int half, typename Packed>
  DUNLIN_INLINE void put(const Packed& source, std::byte* out) {
    if constexpr (Format::kSigned) {
      store(out + g * 128 + 32 * half, source.template even<g, half>());
      store(out + g * 128 + 64 + 32 * half, source.template odd<g, half>());
    } else {
      store(out + g * 64 + 32 * half, source.template group<g, half>());
    }
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
      std::byte* out = codes + block * Unpacked::kBlockBytes;
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

template <typename Format, int T>
__attribute__((noinline)) void strip_tile(const PanelJob& job, const Strip<Format>& strip,
                                          const StripScales& scales, std::int64_t first_block,
                                          int count, std::int64_t token, float (*acc)[16]) {
  run_strip<Format, T>(typename Strip<Format>::Source{strip.codes}, count, scales,
                       token_tile<T>(job, token, first_block), acc);
}

// Tiles of four tokens; what is left over goes as 3, 3 + 3, 3 + 2 or 2 rather than leave one token
// alone with all the loads of the strip.
template <typename Format>
void run_tiles(const PanelJob& job, const Strip<Format>& strip, const StripScales& scales,
               std::int64_t first_block, int count, std::int64_t first_token,
               std::int64_t num_tokens, float (*acc)[16]) {
  for (std::int64_t t = 0; t < num_tokens;) {
    const std::int64_t left = num_tokens - t, token = first_token + t;
    if (left >= 7 || left == 4) {
      strip_tile<Format, 4>(job, strip, scales, first_block, count, token, acc + t);
      t += 4;
    } else if (left >= 5 || left == 3) {
      strip_tile<Format, 3>(job, strip, scales, first_block, count, token, acc + t);
      t += 3;
    } else if (left == 2) {
      strip_tile<Format, 2>(job, strip, scales, first_block, count, token, acc + t);
      t += 2;
    } else {
      strip_tile<Format, 1>(job, strip, scales, first_block, count, token, acc + t);
      t += 1;
    }
  }
}

template <typename Format>
void strip_panel(const PanelJob& job, std::int64_t panel, std::int64_t first_token,
                 std::int64_t num_tokens) {
  const std::int64_t num_blocks = job.cols / kBlockCols;
  const std::byte* records = job.panels + panel * job.panel_bytes;
  const std::byte* bits = records + PanelShape<Format>::scales_bytes(num_blocks);
  alignas(64) float acc[kGroupTokens][16];
  for (std::int64_t t = 0; t < num_tokens; ++t) {
    _mm256_store_ps(acc[t], _mm256_setzero_ps());
    _mm256_store_ps(acc[t] + 8, _mm256_setzero_ps());
  }
  Strip<Format> strip;
  StripScales scales;
  for (std::int64_t first = 0; first < num_blocks; first += Strip<Format>::kBlocks) {
    const std::int64_t left = num_blocks - first;
    const int count =
        left < Strip<Format>::kBlocks ? static_cast<int>(left) : Strip<Format>::kBlocks;
    unpack_scales<typename Format::Scales>(records, first, count, scales);
    strip.unpack(bits + first * Format::Bits::kBlockBytes, count);
    run_tiles<Format>(job, strip, scales, first, count, first_token, num_tokens, acc);
  }
  store_rows(job, panel, first_token, num_tokens, acc);
}

template <typename Format>
void block_panels(const PanelJob& job) {
  for (std::int64_t panel = 0; panel < job.num_panels; ++panel) {
    if (job.num_tokens == 1) {
      direct_panel<Format, 1>(job, panel);
    } else if (job.num_tokens == 2) {
      direct_panel<Format, 2>(job, panel);
    } else if (job.num_tokens == 3) {
      direct_panel<Format, 3>(job, panel);
    } else if (job.num_tokens <= kDirectTokens) {
      direct_panel<Format, 4>(job, panel);
    } else {
      for (std::int64_t first = 0; first < job.num_tokens; first += kGroupTokens) {
        const std::int64_t left = job.num_tokens - first;
        strip_panel<Format>(job, panel, first, left < kGroupTokens ? left : kGroupTokens);
      }
    }
  }
}

constexpr GemmKernels kernels() {
  GemmKernels table{};
  table.panels[static_cast<int>(DType::kF32)] = plain_panels<PlainF32>;
  table.panels[static_cast<int>(DType::kF16)] = plain_panels<PlainF16>;
  table.panels[static_cast<int>(DType::kBF16)] = plain_panels<PlainBF16>;
#define DUNLIN_KERNEL(name) \
  table.panels[static_cast<int>(DType::k##name)] = block_panels<formats::name>;
  DUNLIN_PANEL_FORMATS(DUNLIN_KERNEL)
#undef DUNLIN_KERNEL
  table.quantize_row = quantize_row;
  return table;
}

}  // namespace

extern const GemmKernels kAvx2Gemm = kernels();

}  // namespace dunlin
