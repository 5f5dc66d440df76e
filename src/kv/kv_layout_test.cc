#include "kv/kv_layout.h"

#include <gtest/gtest.h>

namespace dunlin {
namespace {

constexpr std::int64_t kKiB = 1024, kGiB = kKiB * kKiB * kKiB;

KvLayout uniform(int layers, int kv_heads, int head_dim, KvFormat format = KvFormat::kF16) {
  return KvLayout::make(std::vector<int>(static_cast<std::size_t>(layers), 0), kv_heads, head_dim,
                        head_dim, format);
}

// The figures that the literature quotes for LLaMA-7B in f16 (vLLM's and many others').
TEST(KvLayout, Llama7BCostsHalfAMebibyteAToken) {
  const KvLayout layout = uniform(32, 32, 128);
  EXPECT_EQ(layout.bytes_per_token(), 512 * kKiB);
  EXPECT_EQ(layout.blocks_for(4096) * layout.block_bytes(), 2 * kGiB);
  EXPECT_EQ(32 * layout.blocks_for(4096) * layout.block_bytes(), 64 * kGiB);
}

TEST(KvLayout, Mistral7BCostsAQuarterOfThatThroughItsEightKvHeads) {
  EXPECT_EQ(uniform(32, 8, 128).bytes_per_token(), 128 * kKiB);
}

TEST(KvLayout, Qwen05BAndSmolLm) {
  EXPECT_EQ(uniform(24, 2, 64).bytes_per_token(), 12 * kKiB);
  EXPECT_EQ(uniform(30, 3, 64).bytes_per_token(), 22 * kKiB + 512);
  EXPECT_EQ(uniform(24, 2, 64, KvFormat::kF32).bytes_per_token(), 24 * kKiB);
}

// DeepSeek-V2's and V3's latent attention: 512 + 64 numbers a token and layer, and no values.
TEST(KvLayout, ValuesWithinKeysCostNothing) {
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kF32}) {
    KvLayout layout = KvLayout::make(std::vector<int>(61, 0), 1, 576, 512, format);
    layout.values_in_keys = true;
    EXPECT_EQ(layout.layer_bytes_per_token(), 576 * kv_format_info(format).bits / 8);
    EXPECT_EQ(layout.bytes_per_token(), 61 * 576 * kv_format_info(format).bits / 8);
    EXPECT_EQ(layout.block_bytes(), 16 * layout.bytes_per_token());
  }
}

// Scales and padding too.
TEST(KvLayout, FormatsOfFewBitsCostTheirShare) {
  struct Case {
    KvFormats formats;
    std::int64_t qwen_bytes;  // a token, of 12,288 in f16
  };
  for (const auto& [formats, bytes] :
       {Case{KvFormat::kF32, 24576}, Case{KvFormat::kBF16, 12288}, Case{KvFormat::kFp8E4M3, 6144},
        Case{KvFormat::kFp8E5M2, 6144}, Case{KvFormat::kInt8, 6336}, Case{KvFormat::kInt4, 3360},
        Case{{KvFormat::kInt8, KvFormat::kInt4}, 4800}}) {
    const KvLayout layout = KvLayout::make(std::vector<int>(24, 0), 2, 64, 64, formats);
    EXPECT_EQ(layout.bytes_per_token(), bytes) << kv_format_info(formats.k).name;
    EXPECT_EQ(layout.block_bytes(), 16 * bytes);
  }
}

TEST(KvLayout, AUniformModelIsOneGroup) {
  const KvLayout layout = uniform(24, 2, 64);
  ASSERT_EQ(layout.groups.size(), 1u);
  EXPECT_EQ(layout.layers_per_block, 24);
  EXPECT_EQ(layout.groups[0].kind, KvKind::kFull);
  EXPECT_EQ(layout.places[7].group_idx, 0);
  EXPECT_EQ(layout.places[7].layer_in_block, 7);
  EXPECT_EQ(layout.blocks_for(0), 0);
  EXPECT_EQ(layout.blocks_for(1), 1);
  EXPECT_EQ(layout.blocks_for(16), 1);
  EXPECT_EQ(layout.blocks_for(17), 2);
}

// Gemma 3 270M: every sixth layer sees all, the others 512 tokens.
TEST(KvLayout, GemmaHasFiveWindowGroupsAndOneFullGroupOfThreeLayers) {
  std::vector<int> windows(18, 512);
  for (int full : {5, 11, 17}) windows[static_cast<std::size_t>(full)] = 0;
  const KvLayout layout = KvLayout::make(windows, 1, 256, 256, KvFormat::kF16);
  ASSERT_EQ(layout.groups.size(), 6u);
  EXPECT_EQ(layout.layers_per_block, 3);
  EXPECT_EQ(layout.groups[0].kind, KvKind::kFull);
  EXPECT_EQ(layout.groups[0].layers, (std::vector<int>{5, 11, 17}));
  for (std::size_t g = 1; g < 6; ++g) {
    EXPECT_EQ(layout.groups[g].kind, KvKind::kSlidingWindow);
    EXPECT_EQ(layout.groups[g].window, 512);
    EXPECT_EQ(layout.groups[g].layers.size(), 3u);
  }
  EXPECT_EQ(layout.groups[1].layers, (std::vector<int>{0, 1, 2}));
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const KvLayerPlace place = layout.places[i];
    const KvGroup& group = layout.groups[static_cast<std::size_t>(place.group_idx)];
    EXPECT_EQ(group.layers[static_cast<std::size_t>(place.layer_in_block)], static_cast<int>(i));
    EXPECT_EQ(group.window, windows[i]);
  }
  // Below the window all six groups grow; past it only the full one does. A window of 512 that
  // does not begin at a block's first token touches 33 blocks.
  EXPECT_EQ(layout.blocks_for(512), 6 * 32);
  EXPECT_EQ(layout.blocks_for(4096), 256 + 5 * 32);
  EXPECT_EQ(layout.blocks_for(4097), 257 + 5 * 33);
  EXPECT_EQ(layout.bytes_per_token(), 18 * 1024);
}

TEST(KvLayout, LayerCountsWithoutACommonDivisorStillFit) {
  const KvLayout layout =
      KvLayout::make({0, 128, 0, 128, 128}, 2, 32, 16, {KvFormat::kF16, KvFormat::kF32});
  EXPECT_EQ(layout.layers_per_block, 1);
  EXPECT_EQ(layout.groups.size(), 5u);
  EXPECT_EQ(layout.layer_bytes_per_token(), 2 * (64 + 64));
}

}  // namespace
}  // namespace dunlin
