// The panel kernels for AMX-INT8 beside AVX-512: more than a few tokens go through tiles of 16,
// fewer through the vectors of AVX-512. Same sums, bit for bit. Also built over plain loops and
// SIMDe into the test program (gemm_simde_amx.cc), for machines without either.
#include "kernels/gemm_amx_blocks.h"

namespace dunlin {
namespace {

// With at most this many tokens AVX-512 unpacks codes in registers, which is faster than one tile.
template <typename Format>
constexpr std::int64_t kDirectTokens = 16;
static_assert(kGroupTokens % SpacedTokens::kCount == 0);

// Unpacked codes, signed.
template <typename Format>
struct Strip {
  static constexpr int kBlocks = kStripBlocks;
  alignas(64) std::byte codes[kBlocks * UnpackedCodes::kBlockBytes];

  struct Source {
    static constexpr bool kTiled = true;
    const std::byte* codes;
    const std::byte* next;  // unused: the unpacking loop runs ahead of itself
  };

  void unpack(const std::byte* bits, int num_blocks) {
    unpack_codes<Format, kOffset<Format>>(bits, num_blocks, codes);
  }
};

// The blocks of a strip of up to 16 tokens copied side by side: for rows that do not follow each
// other, and for a tile with fewer, whose last row then stands in for the missing ones.
struct TokenCopy {
  static constexpr std::int64_t kStride = (kStripBlocks + 1) * sizeof(ActivationBlock);
  alignas(64) std::byte blocks[SpacedTokens::kCount * kStride];
};

// The tile from `token` on, of which `count` exist; in place where that can be.
DUNLIN_INLINE SpacedTokens spaced_tokens(const PanelJob& job, StripRange range, std::int64_t token,
                                         std::int64_t count, TokenCopy& copy) {
  if (count >= SpacedTokens::kCount && job.token_rows == nullptr) {
    return tokens_in_place(job, range, token);
  }
  for (std::int64_t t = 0; t < SpacedTokens::kCount; ++t) {
    const std::int64_t row = x_row(job, token + (t < count ? t : count - 1));
    __builtin_memcpy(copy.blocks + t * TokenCopy::kStride,
                     job.x.blocks + row * job.x.stride + range.first_block,
                     static_cast<std::size_t>(range.num_blocks) * sizeof(ActivationBlock));
  }
  return SpacedTokens(copy.blocks, TokenCopy::kStride);
}

template <typename Format>
void run_amx_tiles(const PanelJob& job, const typename Strip<Format>::Source& source,
                   const StripScales& scales, StripRange range, std::int64_t first_token,
                   std::int64_t num_tokens, float (*acc)[16]) {
  for (std::int64_t t = 0; t < num_tokens; t += SpacedTokens::kCount) {
    TokenCopy copy;
    const SpacedTokens tile = spaced_tokens(job, range, first_token + t, num_tokens - t, copy);
    run_token_tile<Format>(source.codes, range.num_blocks, scales, tile, acc + t);
  }
}

template <typename Format, typename Source>
DUNLIN_INLINE void run_tiles(const PanelJob& job, Source source, const StripScales& scales,
                             StripRange range, std::int64_t first_token, std::int64_t num_tokens,
                             float (*acc)[16]) {
  if constexpr (Source::kTiled) {
    run_amx_tiles<Format>(job, source, scales, range, first_token, num_tokens, acc);
  } else {
    run_vectors<Format>(job, source, scales, range, first_token, num_tokens, acc);
  }
}

#include "kernels/gemm_panel_loop.inc"

template <typename Format>
void tiled_panels(const PanelJob& job) {
  static constexpr TileConfig kConfig = tile_config<kHasHalves<Format>>();
  const bool tiled = job.num_tokens > kDirectTokens<Format>;
  if (tiled) load_config(kConfig);
  block_panels<Format>(job);
  if (tiled) release_tiles();
}

constexpr GemmKernels tiled_kernels() {
  GemmKernels table = kernels();
#define DUNLIN_KERNEL(name) \
  table.panels[static_cast<int>(DType::k##name)] = tiled_panels<formats::name>;
  DUNLIN_PANEL_FORMATS(DUNLIN_KERNEL)
#undef DUNLIN_KERNEL
  return table;
}

}  // namespace

#ifdef DUNLIN_EMULATE_AMX
extern const GemmKernels kEmulatedAmxGemm = tiled_kernels();
#else
extern const GemmKernels kAmxGemm = tiled_kernels();
#endif

}  // namespace dunlin
