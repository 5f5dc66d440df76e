#include "quant/panel_codec.h"

#include <array>
#include <cstring>

#include "base/check.h"
#include "quant/dequantize.h"
#include "quant/panel_formats.h"

namespace dunlin {
namespace {

template <typename Format>
struct BlockCodec {
  using Shape = PanelShape<Format>;
  using Bits = typename Format::Bits;
  using Scales = typename Format::Scales;
  static constexpr int kSubBlocks = Scales::kSpanBlocks;  // also blocks of 32 a stored block

  static std::int64_t panel_bytes(std::int64_t cols) {
    return Shape::panel_bytes(cols / kBlockCols);
  }

  // Four rows at a time, each read once, front to back, while the panel stays in a cache. The four
  // behind them are fetched meanwhile: four short streams are more than the processor foresees.
  static void pack(const std::byte* const* rows, std::int64_t cols, std::byte* panel) {
    static constexpr std::byte kZeroBlock[256] = {};
    const std::int64_t num_blocks = cols / kBlockCols;
    const std::int64_t stored_bytes = dtype_info(Format::kDType).block_bytes;
    const std::int64_t four_rows = 4 * (num_blocks / kSubBlocks) * stored_bytes;
    for (int r = 0; r < kPanelRows && rows[r] != nullptr; r += 4) {
      FourRows stored;
      std::int64_t step[4];
      for (int i = 0; i < 4; ++i) {
        const bool there = rows[r + i] != nullptr;
        stored.row[i] = there ? rows[r + i] : kZeroBlock;
        step[i] = there ? stored_bytes : 0;
      }
      std::byte* record = panel;
      std::byte* block = panel + Shape::scales_bytes(num_blocks);
      for (std::int64_t b = 0; b < num_blocks; b += kSubBlocks) {
        for (int i = 0; i < 4; ++i) {
          for (std::int64_t at = 0; at < stored_bytes; at += 64) {
            __builtin_prefetch(stored.row[i] + four_rows + at);
          }
          Scales::put(stored.row[i], r + i, record);
        }
        for (int sub = 0; sub < kSubBlocks; ++sub, block += Bits::kBlockBytes) {
          Format::put(stored, sub, r, block);
        }
        for (int i = 0; i < 4; ++i) stored.row[i] += step[i];
        record += Scales::kRecordBytes;
      }
    }
  }

  // A record begins with its half-precision scales; nothing else can be an infinity or a NaN.
  static bool is_finite(const std::byte* panel, std::int64_t cols) {
    constexpr bool kHasMin =
        Scales::kKind == ScaleKind::kMin || Scales::kKind == ScaleKind::kHalvesMin;
    constexpr std::uint16_t kExponent = 0x7C00;
    std::uint16_t halves[kHasMin ? 2 * kPanelRows : kPanelRows];
    unsigned num_bad = 0;
    for (std::int64_t b = 0; b < cols / kBlockCols; b += kSubBlocks) {
      std::memcpy(halves, panel, sizeof(halves));
      for (const std::uint16_t half : halves) num_bad += (half & kExponent) == kExponent;
      panel += Scales::kRecordBytes;
    }
    return num_bad == 0;
  }

  static void dequantize_row(const std::byte* panel, int row, std::int64_t cols, float* out) {
    const std::int64_t num_blocks = cols / kBlockCols;
    const std::byte* bits = panel + Shape::scales_bytes(num_blocks);
    for (std::int64_t block = 0; block < num_blocks; ++block, bits += Bits::kBlockBytes) {
      CodeTile tile;
      Bits::load(bits, tile);
      BlockScales scales;
      Scales::get(panel + block / kSubBlocks * Scales::kRecordBytes,
                  static_cast<int>(block % kSubBlocks), scales);
      for (int k = 0; k < kBlockCols; ++k) {
        *out++ = value(tile.codes[k / 4][4 * row + k % 4], scales, row, k / 16);
      }
    }
  }

  static float value(std::uint8_t code, const BlockScales& scales, int row, int half) {
    const int q = Format::kSigned ? static_cast<std::int8_t>(code) : code - Format::kZeroPoint;
    float d = scales.d[row];
    float offset = 0;
    if constexpr (Scales::kKind == ScaleKind::kHalves || Scales::kKind == ScaleKind::kHalvesMin) {
      d *= static_cast<float>(scales.s[half][row]);
    }
    if constexpr (Scales::kKind == ScaleKind::kMin) offset = scales.m[row];
    if constexpr (Scales::kKind == ScaleKind::kHalvesMin) {
      offset = scales.m[row] * static_cast<float>(scales.t[half][row]);
    }
    return d * static_cast<float>(q) + offset;
  }
};

// Plain types: element (row, column) at [column][row].
template <DType dtype, typename T, float (*to_float)(T)>
struct PlainCodec {
  static std::int64_t panel_bytes(std::int64_t cols) {
    return cols * kPanelRows * static_cast<std::int64_t>(sizeof(T));
  }
  static void pack(const std::byte* const* rows, std::int64_t cols, std::byte* panel) {
    for (int r = 0; r < kPanelRows; ++r) {
      if (rows[r] == nullptr) continue;
      for (std::int64_t k = 0; k < cols; ++k) {
        std::memcpy(panel + (k * kPanelRows + r) * static_cast<std::int64_t>(sizeof(T)),
                    rows[r] + k * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
      }
    }
  }
  static bool is_finite(const std::byte* panel, std::int64_t cols) {
    return all_finite(dtype, panel, cols * kPanelRows);
  }
  static void dequantize_row(const std::byte* panel, int row, std::int64_t cols, float* out) {
    for (std::int64_t k = 0; k < cols; ++k) {
      T element;
      std::memcpy(&element, panel + (k * kPanelRows + row) * static_cast<std::int64_t>(sizeof(T)),
                  sizeof(T));
      out[k] = to_float(element);
    }
  }
};

float same(float value) { return value; }

template <typename Codec>
constexpr PanelCodec make_codec() {
  return {Codec::panel_bytes, Codec::pack, Codec::is_finite, Codec::dequantize_row};
}

constexpr auto kCodecs = [] {
  std::array<PanelCodec, kNumDTypes> table{};
  const auto at = [&](DType dtype) -> PanelCodec& {
    return table[static_cast<std::size_t>(dtype)];
  };
  at(DType::kF32) = make_codec<PlainCodec<DType::kF32, float, same>>();
  at(DType::kF16) = make_codec<PlainCodec<DType::kF16, std::uint16_t, f16_to_f32>>();
  at(DType::kBF16) = make_codec<PlainCodec<DType::kBF16, std::uint16_t, bf16_to_f32>>();
#define DUNLIN_CODEC(name) at(DType::k##name) = make_codec<BlockCodec<formats::name>>();
  DUNLIN_PANEL_FORMATS(DUNLIN_CODEC)
#undef DUNLIN_CODEC
  return table;
}();

}  // namespace

const PanelCodec& panel_codec(DType dtype) {
  const PanelCodec& codec = kCodecs[static_cast<std::size_t>(dtype)];
  DUNLIN_CHECK(codec.pack != nullptr, "not a weight format");
  return codec;
}

}  // namespace dunlin
