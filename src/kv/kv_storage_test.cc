#include "kv/kv_storage.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace dunlin {
namespace {

KvLayout small_layout() {
  return KvLayout::make({0, 32, 32, 32, 0, 32}, 2, 24, 16, {KvFormat::kF16, KvFormat::kF32});
}

TEST(KvStorage, LayersTileABlockWithoutGapOrOverlap) {
  KvStorage storage(small_layout(), 3);
  ASSERT_EQ(storage.layout().layers_per_block, 2);
  const std::int64_t k_bytes = 2 * 24 * 16 * 2, v_bytes = 2 * 16 * 16 * 4;
  EXPECT_EQ(storage.block_bytes(), 2 * (k_bytes + v_bytes));
  for (int layer : {0, 1, 3}) {  // first of their groups
    EXPECT_EQ(storage.layer(layer).k_offset, 0);
    EXPECT_EQ(storage.layer(layer).v_offset, k_bytes);
  }
  for (int layer : {4, 2, 5}) {
    EXPECT_EQ(storage.layer(layer).k_offset, k_bytes + v_bytes);
    EXPECT_EQ(storage.layer(layer).v_offset, 2 * k_bytes + v_bytes);
  }
  EXPECT_EQ(storage.layer(0).window, 0);
  EXPECT_EQ(storage.layer(1).window, 32);
  EXPECT_EQ(storage.layer(2).block_stride, storage.block_bytes());
  EXPECT_EQ(storage.layer(2).base + 2 * storage.block_bytes(), storage.block(2));
}

TEST(KvStorage, KeysThatHoldTheValuesTileABlockAlone) {
  KvLayout layout = KvLayout::make({0, 0}, 1, 40, 24, KvFormat::kF16);
  layout.values_in_keys = true;
  KvStorage storage(layout, 2);
  EXPECT_EQ(storage.block_bytes(), 2 * 40 * 16 * 2);
  EXPECT_TRUE(storage.layer(1).values_in_keys);
  EXPECT_EQ(storage.layer(1).k_offset, 40 * 16 * 2);
  EXPECT_EQ(storage.layer(1).head_dim_v, 24);
}

TEST(KvStorage, BeginsZeroAndAlignedToCacheLines) {
  KvStorage storage(small_layout(), 2);
  for (std::int64_t i = 0; i < 2 * storage.block_bytes(); ++i)
    ASSERT_EQ(storage.block(0)[i], std::byte{0});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(storage.block(1)) % 64, 0u);
}

TEST(KvStorage, CopiesABlockWholeAndLeavesTheOthersAlone) {
  KvStorage storage(small_layout(), 3);
  const auto bytes = static_cast<std::size_t>(storage.block_bytes());
  std::memset(storage.block(0), 1, bytes);
  std::memset(storage.block(1), 2, bytes);
  storage.copy_block(0, 2);
  EXPECT_EQ(std::memcmp(storage.block(0), storage.block(2), bytes), 0);
  EXPECT_EQ(storage.block(1)[0], std::byte{2});
  EXPECT_EQ(storage.block(1)[bytes - 1], std::byte{2});
  storage.copy_block(1, 1);
  EXPECT_EQ(storage.block(1)[0], std::byte{2});
}

TEST(KvStorageDeath, RefusesABlockThatIsNotThere) {
  KvStorage storage(small_layout(), 2);
  EXPECT_DEATH(storage.block(2), "no such KV block");
  EXPECT_DEATH(storage.block(-1), "no such KV block");
}

}  // namespace
}  // namespace dunlin
