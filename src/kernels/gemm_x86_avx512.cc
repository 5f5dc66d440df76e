// The panel kernels for AVX-512 VNNI: same sums, bit for bit, as gemm_portable.cc. Also built over
// SIMDe into the test program (gemm_simde_avx512.cc), for machines without AVX-512.
#include "kernels/gemm_avx512_tiles.h"

namespace dunlin {
namespace {

// With at most this many tokens, one or two tiles of 16, codes are unpacked in registers; with more
// a strip is unpacked once into the first-level cache.
template <typename Format>
constexpr std::int64_t kDirectTokens = 32;

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

  void unpack(const std::byte* bits, int num_blocks) {
    unpack_codes<Format, 0>(bits, num_blocks, codes);
  }
};

template <typename Format, typename Source>
DUNLIN_INLINE void run_tiles(const PanelJob& job, Source source, const StripScales& scales,
                             StripRange range, std::int64_t first_token, std::int64_t num_tokens,
                             float (*acc)[16]) {
  run_vectors<Format>(job, source, scales, range, first_token, num_tokens, acc);
}

#include "kernels/gemm_panel_loop.inc"

}  // namespace

#ifdef DUNLIN_SIMDE
extern const GemmKernels kSimdeAvx512Gemm = kernels();
#else
extern const GemmKernels kAvx512Gemm = kernels();
#endif

}  // namespace dunlin
