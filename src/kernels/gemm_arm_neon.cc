// The panel kernels for NEON with dot products: same sums, bit for bit, as gemm_portable.cc.
//
// Few tokens: codes are unpacked in registers as the panel streams by. More: a strip of the panel
// is unpacked once into the first-level cache and all tokens run over it.
#include "kernels/gemm_neon_blocks.h"
#include "kernels/gemm_neon_plain.h"
#include "kernels/gemm_neon_rows.h"

namespace dunlin {
namespace {

// Tokens that run over one unpacked strip: their accumulators take 8 KiB.
constexpr std::int64_t kGroupTokens = 128;
// With at most this many tokens codes are unpacked in registers; with more, into a strip. Eight
// bits need no unpacking.
template <typename Format>
constexpr std::int64_t kDirectTokens = Format::Bits::kBlockBytes == 512 ? kGroupTokens : 4;
// Tokens of a tile whose sums stay in registers: a factor a half block doubles the sums.
template <ScaleKind kind>
constexpr int kTileTokens = kind == ScaleKind::kHalves || kind == ScaleKind::kHalvesMin ? 2 : 4;

// Prefetching while codes are unpacked in registers is left to the hardware.
constexpr std::int64_t kAheadBytes = 0;

template <typename Format>
struct DirectSource {
  const std::byte* bits;
  DUNLIN_INLINE DirectSource after_first_tile() const { return *this; }
  DUNLIN_INLINE Codes<typename Format::Bits> operator()(int block) const {
    return {bits + block * Format::Bits::kBlockBytes};
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
          __builtin_prefetch(next + block * Format::Bits::kBlockBytes + line, 0, 2);
        }
      }
      return {codes + block * UnpackedCodes::kBlockBytes};
    }
  };

  template <int g, int quarter, typename Packed>
  static DUNLIN_INLINE void put(const Packed& packed, std::byte* out) {
    vst1q_u8(reinterpret_cast<std::uint8_t*>(out + g * 64 + 16 * quarter),
             packed.template group<g, quarter>());
  }
  template <int g, typename Packed>
  static DUNLIN_INLINE void put_group(const Packed& packed, std::byte* out) {
    put<g, 0>(packed, out);
    put<g, 1>(packed, out);
    put<g, 2>(packed, out);
    put<g, 3>(packed, out);
  }

  void unpack(const std::byte* bits, int num_blocks) {
    const DirectSource<Format> packed_at{bits};
    for (int block = 0; block < num_blocks; ++block) {
      const auto packed = packed_at(block);
      std::byte* out = codes + block * UnpackedCodes::kBlockBytes;
      put_group<0>(packed, out);
      put_group<1>(packed, out);
      put_group<2>(packed, out);
      put_group<3>(packed, out);
      put_group<4>(packed, out);
      put_group<5>(packed, out);
      put_group<6>(packed, out);
      put_group<7>(packed, out);
    }
  }
};

template <typename Format, int T, typename Source>
__attribute__((noinline)) void run_tile(const PanelJob& job, Source source,
                                        const StripScales& scales, StripRange range,
                                        std::int64_t token, float (*acc)[16]) {
  const ActivationBlock* x[T];
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) {
    x[t] = job.x.blocks + x_row(job, token + t) * job.x.stride + range.first_block;
  }
  run_strip<Format, T>(source, range.num_blocks, scales, x, acc);
}

// Whole tiles, then two tokens and one.
template <typename Format, typename Source>
void run_tiles(const PanelJob& job, Source source, const StripScales& scales, StripRange range,
               std::int64_t first_token, std::int64_t num_tokens, float (*acc)[16]) {
  constexpr int kTile = kTileTokens<Format::Scales::kKind>;
  for (std::int64_t t = 0; t < num_tokens; source = source.after_first_tile()) {
    const std::int64_t left = num_tokens - t, token = first_token + t;
    if (left >= kTile) {
      run_tile<Format, kTile>(job, source, scales, range, token, acc + t);
      t += kTile;
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
  for (std::int64_t t = 0; t < num_tokens; ++t) {
    for (int q = 0; q < 4; ++q) vst1q_f32(acc[t] + 4 * q, vdupq_n_f32(0));
  }
}

#include "kernels/gemm_panel_loop.inc"

}  // namespace

extern const GemmKernels kNeonGemm = kernels();

}  // namespace dunlin
