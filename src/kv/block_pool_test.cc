#include "kv/block_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dunlin {
namespace {

using ::testing::ElementsAre;

TEST(BlockPool, GivesOutEveryBlockOnceAndThenRefuses) {
  BlockPool pool(3);
  EXPECT_EQ(pool.allocate().block, 0);
  EXPECT_EQ(pool.allocate().block, 1);
  EXPECT_EQ(pool.allocate().block, 2);
  EXPECT_EQ(pool.num_free(), 0);
  EXPECT_EQ(pool.allocate().block, kNoBlock);
  pool.check_integrity();
}

TEST(BlockPool, KeepsABlockUntilItsLastHolderReleasesIt) {
  BlockPool pool(1);
  const auto block = pool.allocate().block;
  pool.add_ref(block);
  pool.release(block);
  EXPECT_EQ(pool.num_free(), 0);
  pool.release(block);
  EXPECT_EQ(pool.num_free(), 1);
  pool.check_integrity();
}

TEST(BlockPool, TakesFreeBlocksBeforeCachedOnesAndOldCachedOnesFirst) {
  BlockPool pool(3);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(pool.allocate().block, i);
  pool.mark_cached(0);
  pool.mark_cached(2);
  pool.release(2);
  pool.release(0);
  pool.release(1);
  EXPECT_THAT(pool.free_list(), ElementsAre(1, 2, 0));
  EXPECT_EQ(pool.num_cached(), 2);
  EXPECT_FALSE(pool.allocate().was_cached);
  const auto evicted = pool.allocate();
  EXPECT_EQ(evicted.block, 2);
  EXPECT_TRUE(evicted.was_cached);
  EXPECT_FALSE(pool.is_cached(2));
  pool.check_integrity();
}

TEST(BlockPool, AnUnmarkedBlockIsFreeAndComesBeforeCachedOnes) {
  BlockPool pool(3);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(pool.allocate().block, i);
  for (int i = 0; i < 3; ++i) pool.mark_cached(i);
  for (int i = 0; i < 2; ++i) pool.release(i);
  pool.unmark_cached(1);
  pool.unmark_cached(2);
  EXPECT_THAT(pool.free_list(), ElementsAre(1, 0));
  EXPECT_EQ(pool.num_cached(), 1);
  pool.release(2);
  EXPECT_THAT(pool.free_list(), ElementsAre(2, 1, 0));
  pool.check_integrity();
}

TEST(BlockPool, ACachedBlockHeldAgainIsNotEvicted) {
  BlockPool pool(2);
  ASSERT_EQ(pool.allocate().block, 0);
  pool.mark_cached(0);
  pool.release(0);
  pool.add_ref(0);
  EXPECT_EQ(pool.num_free(), 1);
  EXPECT_EQ(pool.allocate().block, 1);
  EXPECT_EQ(pool.allocate().block, kNoBlock);
  EXPECT_TRUE(pool.is_cached(0));
  pool.check_integrity();
}

}  // namespace
}  // namespace dunlin
