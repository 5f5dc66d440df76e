#include "kv/kv_cache_manager.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace dunlin {
namespace {

// One full group; with windows, one more group for each.
KvLayout layout_of(std::vector<int> windows) {
  return KvLayout::make(windows, 1, 8, 8, KvFormat::kF16);
}

std::vector<TokenId> tokens_from(TokenId first, int count) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

void compute(KvCacheManager& kv, KvSequence& seq, const std::vector<TokenId>& tokens,
             int num_tokens) {
  ASSERT_TRUE(kv.allocate(seq, num_tokens));
  kv.commit(seq, tokens, num_tokens);
}

TEST(KvCacheManager, HoldsWholeBlocksForAllTokensOfAFullGroup) {
  KvCacheManager kv(layout_of({0}), 10, true);
  KvSequence seq = kv.make_sequence(64);
  compute(kv, seq, tokens_from(0, 17), 17);
  EXPECT_EQ(seq.num_held_blocks(), 2);
  EXPECT_EQ(kv.num_free_blocks(), 8);
  kv.free(seq);
  EXPECT_EQ(kv.num_free_blocks(), 10);
  EXPECT_EQ(kv.num_cached_blocks(), 1);
}

// What plans and evaluations count is what sequences hold; a policy drops tokens in layers of full
// attention alone.
TEST(KvCacheManager, HeldBlocksAreThoseThatASequenceHolds) {
  constexpr int kPrompt = 200, kTokens = 400;
  const auto tokens = tokens_from(0, kTokens);
  for (const std::vector<int>& windows : {std::vector{0}, {0, 0, 96}, {0, 160}}) {
    const KvLayout layout = layout_of(windows);
    for (const KvPolicy& policy :
         {KvPolicy{}, KvPolicy{KvPolicyType::kQuest}, KvPolicy{KvPolicyType::kWindow, 4, 64},
          KvPolicy{.type = KvPolicyType::kH2o, .budget = 64},
          KvPolicy{.type = KvPolicyType::kSnapKv, .budget = 64, .observed = 16}}) {
      SCOPED_TRACE(testing::Message() << to_string(policy) << ", " << windows.size() << " groups");
      KvCacheManager kv(layout, 200, false);
      KvSequence seq = kv.make_sequence(kTokens, false, {}, policy, kPrompt);
      const bool is_exact = windows.size() == 1 && !policy.gives_back();
      for (int n = 1; n <= kTokens; ++n) {
        compute(kv, seq, tokens, n);
        const auto counted = KvCacheManager::held_blocks(layout, n, kPrompt, policy);
        ASSERT_LE(seq.num_held_blocks(), counted) << n;
        if (is_exact) {
          ASSERT_EQ(seq.num_held_blocks(), counted) << n;
        }
        // The block that has just slid out of a window, a group each.
        if (!policy.gives_back()) {
          ASSERT_GE(seq.num_held_blocks() + std::ssize(windows), counted) << n;
        }
      }
      kv.free(seq);
    }
  }
}

TEST(KvCacheManager, RefusesWithoutChangingAnythingWhenBlocksRunOut) {
  KvCacheManager kv(layout_of({0}), 3, true);
  KvSequence seq = kv.make_sequence(64);
  EXPECT_FALSE(kv.allocate(seq, 49));
  EXPECT_EQ(kv.num_free_blocks(), 3);
  EXPECT_TRUE(kv.allocate(seq, 48));
  kv.free(seq);
}

TEST(KvCacheManager, GivesBackBlocksThatSlidOutOfTheWindow) {
  KvCacheManager kv(layout_of({32}), 20, true);
  KvSequence seq = kv.make_sequence(200);
  const auto tokens = tokens_from(0, 200);
  for (int n = 1; n <= 200; ++n) {
    compute(kv, seq, tokens, n);
    // The next query, at position n, reads positions n - 31 on.
    const int first = std::max(0, n - 31) / kBlockSize;
    ASSERT_EQ(seq.table(0).first_kept(), std::min(first, seq.table(0).size())) << n;
    ASSERT_LE(seq.num_held_blocks(), kv.max_blocks_per_sequence(n, 1)) << n;
  }
  kv.free(seq);
}

TEST(KvCacheManager, FindsThePrefixOfAFinishedSequenceButLeavesTheLastTokenToCompute) {
  KvCacheManager kv(layout_of({0}), 10, true);
  const auto tokens = tokens_from(0, 48);
  KvSequence first = kv.make_sequence(48);
  compute(kv, first, tokens, 48);
  kv.free(first);
  KvSequence second = kv.make_sequence(64);
  EXPECT_EQ(kv.match_prefix(second, tokens), 32);
  kv.free(second);
  EXPECT_EQ(kv.match_prefix(second, tokens_from(0, 49)), 48);
  kv.free(second);
  auto other = tokens;
  other[20] = 999;
  EXPECT_EQ(kv.match_prefix(second, other), 16);
  kv.free(second);
}

TEST(KvCacheManager, AWindowGroupNeedsOnlyItsLastTokensForAHit) {
  const KvLayout layout = layout_of({0, 16});
  KvCacheManager kv(layout, 30, true);
  const auto tokens = tokens_from(0, 100);
  KvSequence first = kv.make_sequence(100);
  compute(kv, first, tokens, 100);
  kv.free(first);
  KvSequence second = kv.make_sequence(200);
  EXPECT_EQ(kv.match_prefix(second, tokens), 96);
  // Position 96 reads 81 on: the last block only.
  EXPECT_EQ(second.num_held_blocks(), 6 + 1);
  kv.free(second);
}

TEST(KvCacheManager, AHitEndsWhereEveryGroupStillHasWhatItReads) {
  KvCacheManager kv(layout_of({0, 16}), 12, true);
  const auto tokens = tokens_from(0, 64);
  KvSequence seq = kv.make_sequence(64);
  // In steps of one block, so that window blocks are given back from the front one by one.
  for (int n = 16; n <= 64; n += 16) compute(kv, seq, tokens, n);
  kv.free(seq);
  // Free: 4 never used, then the window's blocks 0 to 2 in order of release. Take 6.
  KvSequence other = kv.make_sequence(48, false);
  ASSERT_TRUE(kv.allocate(other, 48));
  // The window blocks of the tokens 0 to 31 are gone, those of 32 to 47 are there.
  EXPECT_EQ(kv.match_prefix(seq, std::span(tokens).first(33)), 0);
  EXPECT_EQ(kv.match_prefix(seq, std::span(tokens).first(49)), 48);
  kv.free(seq);
  kv.free(other);
}

TEST(KvCacheManager, EvictsTheEndOfAPrefixFirst) {
  KvCacheManager kv(layout_of({0}), 4, true);
  const auto tokens = tokens_from(0, 65);
  KvSequence seq = kv.make_sequence(65);
  compute(kv, seq, tokens, 64);
  kv.free(seq);
  KvSequence other = kv.make_sequence(65);
  ASSERT_TRUE(kv.allocate(other, 16));
  kv.free(other);
  EXPECT_EQ(kv.match_prefix(seq, tokens), 48);
  kv.free(seq);
}

TEST(KvCacheManager, SequencesThatComputedTheSameShareItsBlocksAfterwards) {
  KvCacheManager kv(layout_of({0}), 10, true);
  const auto tokens = tokens_from(0, 32);
  KvSequence a = kv.make_sequence(64), b = kv.make_sequence(64);
  ASSERT_TRUE(kv.allocate(a, 32));
  ASSERT_TRUE(kv.allocate(b, 32));
  EXPECT_EQ(kv.num_free_blocks(), 6);
  kv.commit(a, tokens, 32);
  kv.commit(b, tokens, 32);
  EXPECT_EQ(kv.num_free_blocks(), 8);
  EXPECT_EQ(a.table(0)[1], b.table(0)[1]);
  kv.free(a);
  kv.free(b);
}

TEST(KvCacheManager, AForkCopiesTheLastBlockOnlyWhenItIsWritten) {
  KvCacheManager kv(layout_of({0}), 10, true);
  const auto tokens = tokens_from(0, 40);
  KvSequence seq = kv.make_sequence(64);
  compute(kv, seq, tokens, 20);
  KvSequence child = kv.fork(seq, 64);
  EXPECT_EQ(kv.num_free_blocks(), 8);
  const std::int32_t shared = seq.table(0)[1];
  ASSERT_TRUE(kv.allocate(child, 21));
  ASSERT_EQ(kv.copies().size(), 1u);
  EXPECT_EQ(kv.copies()[0].from, shared);
  EXPECT_EQ(kv.copies()[0].to, child.table(0)[1]);
  EXPECT_NE(child.table(0)[1], shared);
  EXPECT_EQ(child.table(0)[0], seq.table(0)[0]);
  kv.clear_copies();
  ASSERT_TRUE(kv.allocate(seq, 21));
  EXPECT_TRUE(kv.copies().empty()) << "the parent is alone now";
  kv.free(seq);
  kv.free(child);
}

TEST(KvCacheManager, TruncationIntoACachedBlockWritesToACopy) {
  KvCacheManager kv(layout_of({0}), 10, true);
  const auto tokens = tokens_from(0, 48);
  KvSequence seq = kv.make_sequence(64);
  compute(kv, seq, tokens, 48);
  EXPECT_EQ(kv.truncate(seq, 40), 40);
  EXPECT_EQ(seq.num_held_blocks(), 3);
  EXPECT_EQ(kv.truncate(seq, 20), 20);
  EXPECT_EQ(seq.num_held_blocks(), 2);
  ASSERT_TRUE(kv.allocate(seq, 21));
  EXPECT_EQ(kv.copies().size(), 1u);
  auto other = tokens;
  other[20] = 77;
  kv.commit(seq, other, 21);
  const KvSequence* all[] = {&seq};
  kv.check_integrity(all);
  KvSequence again = kv.make_sequence(64);
  EXPECT_EQ(kv.match_prefix(again, tokens), 32) << "the cached blocks kept their tokens";
  kv.free(again);
  kv.free(seq);
}

TEST(KvCacheManager, TruncationBehindAWindowEmptiesTheSequence) {
  KvCacheManager kv(layout_of({0, 16}), 20, true);
  const auto tokens = tokens_from(0, 64);
  KvSequence seq = kv.make_sequence(64);
  compute(kv, seq, tokens, 64);
  EXPECT_EQ(kv.truncate(seq, 62), 0);
  EXPECT_EQ(seq.num_held_blocks(), 0);
  compute(kv, seq, tokens, 62);
  EXPECT_EQ(kv.truncate(seq, 60), 60);
  kv.free(seq);
}

TEST(KvCacheManager, OnlySequencesOfOneSaltShareBlocks) {
  KvCacheManager kv(layout_of({0, 16}), 60, true);
  const auto tokens = tokens_from(0, 49);
  const CacheSalt salts[] = {CacheSalt(""), CacheSalt("a"), CacheSalt("b")};
  std::vector<KvSequence> seqs;
  for (const CacheSalt& salt : salts) {
    seqs.push_back(kv.make_sequence(64, true, salt));
    EXPECT_EQ(kv.match_prefix(seqs.back(), tokens), 0);
    compute(kv, seqs.back(), tokens, 48);
  }
  EXPECT_NE(seqs[0].table(0)[0], seqs[1].table(0)[0]);
  EXPECT_NE(seqs[1].table(0)[0], seqs[2].table(0)[0]);
  KvSequence again = kv.make_sequence(64, true, CacheSalt("a"));
  EXPECT_EQ(kv.match_prefix(again, tokens), 48);
  EXPECT_EQ(again.table(0)[0], seqs[1].table(0)[0]);
  KvSequence child = kv.fork(again, 64);
  compute(kv, child, tokens_from(0, 64), 64);
  EXPECT_EQ(kv.truncate(again, 0), 0);
  EXPECT_EQ(kv.match_prefix(again, tokens_from(0, 65)), 64) << "a fork keeps its salt";
  const KvSequence* all[] = {&seqs[0], &seqs[1], &seqs[2], &again, &child};
  kv.check_integrity(all);
  for (KvSequence& seq : seqs) kv.free(seq);
  kv.free(again);
  kv.free(child);
  kv.check_integrity({});
}

TEST(KvCacheManager, AFullIndexRefusesSaltsWithoutLosingNodes) {
  KvCacheManager kv(layout_of({0}), 2, true);
  KvSequence seqs[] = {kv.make_sequence(64, true, CacheSalt("a")),
                       kv.make_sequence(64, true, CacheSalt("b")), kv.make_sequence(64)};
  for (int round = 0; round < 20; ++round) {
    KvSequence& seq = seqs[round % 3];
    compute(kv, seq, tokens_from(20 * round, 17), 17);
    kv.free(seq);
    kv.check_integrity({});
  }
}

TEST(KvCacheManager, AResetForgetsWhatIsCachedAndWhatIsHeld) {
  KvCacheManager kv(layout_of({0}), 12, true);
  KvSequence done = kv.make_sequence(64), running = kv.make_sequence(80);
  compute(kv, done, tokens_from(100, 48), 48);
  kv.free(done);
  const auto tokens = tokens_from(0, 80);
  compute(kv, running, tokens, 40);
  const PrefixCacheReset reset = kv.reset_prefix_cache();
  EXPECT_EQ(reset.num_dropped_blocks, 3);
  EXPECT_EQ(reset.num_forgotten_blocks, 2);
  EXPECT_EQ(kv.num_cached_blocks(), 0);
  compute(kv, running, tokens, 64);
  KvSequence other = kv.make_sequence(80);
  EXPECT_EQ(kv.match_prefix(other, tokens), 0) << "not even what came after the reset";
  compute(kv, other, tokens, 48);
  const KvSequence* all[] = {&running, &other};
  kv.check_integrity(all);
  kv.free(other);
  kv.free(running);
  EXPECT_EQ(kv.match_prefix(running, tokens), 48) << "a freed sequence uses the cache again";
  compute(kv, running, tokens, 80);
  kv.free(running);
  EXPECT_EQ(kv.match_prefix(running, tokens), 64);
  kv.free(running);
  kv.check_integrity({});
}

TEST(KvCacheManager, CountsTheSlotsThatHoldNothingOfUse) {
  KvCacheManager kv(layout_of({0, 20}), 30, true);
  const auto tokens = tokens_from(0, 200);
  KvSequence seq = kv.make_sequence(200);
  for (int n = 1; n <= 200; ++n) {
    compute(kv, seq, tokens, n);
    KvWaste waste;
    kv.add_waste(seq, waste);
    const int first_seen = std::max(0, n - 19);
    ASSERT_EQ(waste.num_empty, 2 * ((16 - n % 16) % 16)) << n;
    // A window whose next query begins at a block's first token holds nothing of the one before.
    ASSERT_EQ(waste.num_expired, first_seen % 16) << n;
    ASSERT_EQ(waste.num_slots, 16 * seq.num_held_blocks());
  }
  KvWaste ahead;
  KvSequence fresh = kv.make_sequence(64);
  ASSERT_TRUE(kv.allocate(fresh, 40));
  kv.add_waste(fresh, ahead);
  EXPECT_EQ(ahead.num_empty, ahead.num_slots) << "slots before their tokens are computed";
  kv.free(fresh);
  kv.free(seq);
}

TEST(KvCacheManager, BypassesTheCacheWhereAsked) {
  KvCacheManager kv(layout_of({0}), 10, true);
  const auto tokens = tokens_from(0, 40);
  KvSequence seq = kv.make_sequence(64, false);
  compute(kv, seq, tokens, 40);
  kv.free(seq);
  EXPECT_EQ(kv.num_cached_blocks(), 0);
  KvSequence other = kv.make_sequence(64);
  compute(kv, other, tokens, 40);
  kv.free(other);
  EXPECT_EQ(kv.match_prefix(seq, tokens), 0);
  EXPECT_EQ(kv.match_prefix(other, tokens), 32);
  kv.free(other);
}

TEST(KvCacheManager, KnowsWhatTheLongestSequenceWillTake) {
  const KvLayout layout = layout_of({0, 32});
  KvCacheManager kv(layout, 100, true);
  const auto tokens = tokens_from(0, 400);
  for (const int chunk : {1, 5, 16, 33, 64}) {
    KvSequence seq = kv.make_sequence(400);
    int most = 0;
    for (int n = 0; n < 400;) {
      n = std::min(400, n + chunk);
      ASSERT_TRUE(kv.allocate(seq, n));
      most = std::max(most, seq.num_held_blocks());
      kv.commit(seq, tokens, n);
    }
    EXPECT_LE(most, kv.max_blocks_per_sequence(400, chunk)) << chunk;
    EXPECT_GE(most + 2, kv.max_blocks_per_sequence(400, chunk)) << "too careful at " << chunk;
    kv.free(seq);
  }
}

}  // namespace
}  // namespace dunlin
