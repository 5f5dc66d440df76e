#include "kv/prefix_index.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "kv/block_pool.h"

namespace dunlin {
namespace {

std::vector<TokenId> block_of(TokenId first) {
  std::vector<TokenId> tokens(kBlockSize);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

TEST(PrefixIndex, FindsAChildByParentAndTokens) {
  PrefixIndex index(1, 8, 8);
  const PrefixNode a = index.find_or_add_child(PrefixIndex::root(), block_of(0).data());
  const PrefixNode b = index.find_or_add_child(a, block_of(0).data());
  EXPECT_NE(a, b);
  EXPECT_EQ(index.find_child(PrefixIndex::root(), block_of(0).data()), a);
  EXPECT_EQ(index.find_child(a, block_of(0).data()), b);
  EXPECT_EQ(index.find_child(a, block_of(1).data()), kNoNode);
  EXPECT_EQ(index.find_child(b, block_of(0).data()), kNoNode);
}

TEST(PrefixIndex, ForgetsANodeWithItsLastUseAndThenItsParents) {
  PrefixIndex index(2, 8, 8);
  const PrefixNode a = index.find_or_add_child(PrefixIndex::root(), block_of(0).data());
  const PrefixNode b = index.find_or_add_child(a, block_of(5).data());
  index.set_block(b, 0, 3);
  index.set_block(b, 1, 4);
  index.remove_block(3);
  EXPECT_EQ(index.block(b, 0), kNoBlock);
  EXPECT_EQ(index.block(b, 1), 4);
  EXPECT_EQ(index.num_nodes(), 2);
  index.pin(b);
  index.remove_block(4);
  EXPECT_EQ(index.num_nodes(), 2);
  index.check_integrity();
  index.unpin(b);
  EXPECT_EQ(index.num_nodes(), 0);
  EXPECT_EQ(index.find_child(PrefixIndex::root(), block_of(0).data()), kNoNode);
  index.check_integrity();
}

TEST(PrefixIndex, RefusesNodesBeyondItsLimitAndTakesThemAgainLater) {
  PrefixIndex index(1, 4, 2);
  const PrefixNode a = index.find_or_add_child(PrefixIndex::root(), block_of(0).data());
  const PrefixNode b = index.find_or_add_child(PrefixIndex::root(), block_of(1).data());
  index.set_block(a, 0, 0);
  index.set_block(b, 0, 1);
  EXPECT_EQ(index.find_or_add_child(a, block_of(2).data()), kNoNode);
  index.remove_block(1);
  EXPECT_NE(index.find_or_add_child(a, block_of(2).data()), kNoNode);
}

}  // namespace
}  // namespace dunlin
