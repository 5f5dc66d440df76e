#include "kv/kv_policy.h"

#include <gtest/gtest.h>

#include "kv/kv_cache_manager.h"

namespace dunlin {
namespace {

constexpr KvPolicy kSmall{.type = KvPolicyType::kWindow, .sinks = 4, .window = 32};

TEST(KvPolicy, WindowsMoveByWholeBlocks) {
  for (int position = 0; position < 200; ++position) {
    const int first = kSmall.first_kept(position);
    if (position < 32) {
      EXPECT_EQ(first, 0) << position;
      continue;
    }
    EXPECT_EQ(first % kBlockSize, 0) << position;
    EXPECT_LE(position - first + 1, 32) << position;
    EXPECT_GT(position - first + 1, 32 - kBlockSize) << position;
  }
  EXPECT_EQ(KvPolicy{}.first_kept(1'000'000), 0);
}

TEST(KvPolicy, TokensAreExactWhileNothingIsMissed) {
  for (const int sinks : {0, 1, 4, 15, 16, 20, 33}) {
    const KvPolicy policy{KvPolicyType::kWindow, sinks, 48};
    const int exact = policy.num_exact_tokens(0);
    EXPECT_EQ(policy.first_kept(exact - 1), 0) << sinks;
    EXPECT_GT(policy.first_kept(exact), 0) << sinks;
  }
  EXPECT_EQ(KvPolicy{}.num_exact_tokens(0), KvPolicy::kUnbounded);
}

TEST(KvPolicy, ReadsWhatItWrites) {
  for (const char* text :
       {"full", "quest,budget=32", "window,sinks=0,window=16", "window,sinks=4,window=1024"}) {
    const auto policy = parse_kv_policy(text);
    ASSERT_TRUE(policy) << text;
    EXPECT_EQ(to_string(*policy), text);
  }
  EXPECT_EQ(to_string(*parse_kv_policy("window")), "window,sinks=4,window=1024");
  EXPECT_EQ(to_string(*parse_kv_policy("window,window=64")), "window,sinks=4,window=64");
}

TEST(KvPolicy, RefusesWhatItDoesNotKnow) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "there are full, window, quest"}, {"Window", "there are full, window"},
      {"full,sinks=4", "sinks=4"},           {"window,", "''"},
      {"window,budget=3", "budget=3"},       {"window,sinks", "no whole number"},
      {"window,sinks=", "no whole"},         {"window,sinks=4x", "no whole"},
      {"window,sinks=-1", "sinks"},          {"window,sinks=99999999999", "no whole"},
      {"window,window=0", "window"},         {"window,window=40", "multiple of 16"},
      {"window,sinks=1025", "1024"},         {"quest,budget=16", "budget"},
      {"quest,window=64", "window=64"},
  };
  for (const auto& [text, part] : cases) {
    const auto policy = parse_kv_policy(text);
    ASSERT_FALSE(policy) << text;
    EXPECT_NE(policy.error().message().find(part), std::string::npos)
        << text << ": " << policy.error().message();
  }
}

TEST(KvPolicy, QuestReadsAllForAPromptAndItsBudgetBehind) {
  const KvPolicy quest{.type = KvPolicyType::kQuest, .budget = 64};
  for (int position = 0; position < 300; ++position) {
    EXPECT_EQ(quest.num_pages(position, 100), position < 100 ? 0 : 4) << position;
    EXPECT_EQ(quest.num_pages(position, 10), position < 64 ? 0 : 4) << position;
    EXPECT_EQ(quest.first_kept(position), 0);
  }
  EXPECT_EQ(quest.num_exact_tokens(100), 100);
  EXPECT_EQ(quest.num_exact_tokens(10), 64);
  EXPECT_EQ(quest.max_blocks(1000, 16), num_blocks_for(1000));
  EXPECT_EQ(*parse_kv_policy("quest"), KvPolicy{.type = KvPolicyType::kQuest});
}

// One sequence over a group of full attention and one with a window of its own.
class WindowSequence : public testing::TestWithParam<KvPolicy> {
 protected:
  static constexpr int kMaxTokens = 640;
  std::vector<TokenId> tokens_ = std::vector<TokenId>(kMaxTokens, 7);
  KvLayout layout_ = KvLayout::make({0, 24}, 1, 8, 8, KvFormat::kF16);
};
INSTANTIATE_TEST_SUITE_P(Policies, WindowSequence,
                         testing::Values(KvPolicy{KvPolicyType::kWindow, 0, 16}, kSmall,
                                         KvPolicy{KvPolicyType::kWindow, 20, 48},
                                         KvPolicy{KvPolicyType::kWindow, 64, 64}));

TEST_P(WindowSequence, HoldsNoMoreThanItsBudget) {
  const KvPolicy policy = GetParam();
  for (const int chunk : {1, 5, 16, 50}) {
    KvCacheManager kv(layout_, 200, true);
    KvSequence seq = kv.make_sequence(kMaxTokens, true, {}, policy);
    int most = 0;
    for (int n = chunk; n <= kMaxTokens; n += chunk) {
      ASSERT_TRUE(kv.allocate(seq, n));
      most = std::max(most, seq.table(0).num_held());
      kv.commit(seq, tokens_, n);
      kv.check_integrity(std::vector<const KvSequence*>{&seq});
      // What the next query sees is there, and no more than the budget's blocks.
      const BlockTable& table = seq.table(0);
      for (int p = policy.first_kept(n); p < n; ++p) ASSERT_NE(table[p / kBlockSize], kNoBlock);
      for (int p = 0; p < std::min(n, policy.sinks); ++p)
        ASSERT_NE(table[p / kBlockSize], kNoBlock);
      ASSERT_LE(table.num_held(), (policy.sinks + policy.window) / kBlockSize + 1) << n;
    }
    EXPECT_LE(most, policy.max_blocks(kMaxTokens, chunk)) << chunk;
    EXPECT_GE(most + 1, policy.max_blocks(kMaxTokens, chunk)) << "too careful at " << chunk;
    kv.free(seq);
    EXPECT_EQ(kv.num_free_blocks(), 200);
  }
}

TEST_P(WindowSequence, SharesOnlyWhatFullAttentionWouldWrite) {
  const KvPolicy policy = GetParam();
  KvCacheManager kv(layout_, 200, true);
  KvSequence lossy = kv.make_sequence(kMaxTokens, true, {}, policy);
  ASSERT_TRUE(kv.allocate(lossy, kMaxTokens));
  kv.commit(lossy, tokens_, kMaxTokens);
  KvSequence full = kv.make_sequence(kMaxTokens);
  EXPECT_LE(kv.match_prefix(full, tokens_), policy.num_exact_tokens(0));
  kv.free(full);
  kv.free(lossy);

  ASSERT_TRUE(kv.allocate(full, kMaxTokens));
  kv.commit(full, tokens_, kMaxTokens);
  const int exact = policy.num_exact_tokens(0) / kBlockSize * kBlockSize;
  EXPECT_EQ(kv.match_prefix(lossy, tokens_), exact) << "the window's group serves it";
  EXPECT_LE(lossy.table(0).num_held(), (policy.sinks + policy.window) / kBlockSize + 1);
  kv.check_integrity(std::vector<const KvSequence*>{&lossy, &full});
  kv.free(full);
  kv.free(lossy);
  EXPECT_EQ(kv.num_free_blocks(), 200);
}

TEST_P(WindowSequence, ForksAndTruncatesWithItsGap) {
  const KvPolicy policy = GetParam();
  KvCacheManager kv(layout_, 200, false);
  KvSequence seq = kv.make_sequence(kMaxTokens, true, {}, policy);
  for (int n = 1; n <= 300; ++n) {
    ASSERT_TRUE(kv.allocate(seq, n));
    kv.commit(seq, tokens_, n);
  }
  KvSequence child = kv.fork(seq, kMaxTokens);
  kv.check_integrity(std::vector<const KvSequence*>{&seq, &child});
  EXPECT_EQ(child.table(0).num_held(), seq.table(0).num_held());
  EXPECT_EQ(kv.truncate(child, 299), 299);
  EXPECT_EQ(kv.truncate(child, 100), 0) << "what it would read is gone";
  EXPECT_EQ(child.num_held_blocks(), 0);
  kv.check_integrity(std::vector<const KvSequence*>{&seq, &child});
  KvWaste waste;
  kv.add_waste(seq, waste);
  EXPECT_LT(waste.num_expired, 2 * 2 * kBlockSize);
  kv.free(seq);
  EXPECT_EQ(kv.num_free_blocks(), 200);
}

}  // namespace
}  // namespace dunlin
