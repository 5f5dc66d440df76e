#include "kv/kv_policy.h"

#include <gtest/gtest.h>

#include <algorithm>

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
  for (const char* text : {"full", "quest,budget=32", "h2o,budget=64,recent=16",
                           "h2o,budget=20%,recent=0", "snapkv,budget=512,window=16,pool=5",
                           "window,sinks=0,window=16", "window,sinks=4,window=1024"}) {
    const auto policy = parse_kv_policy(text);
    ASSERT_TRUE(policy) << text;
    EXPECT_EQ(to_string(*policy), text);
  }
  EXPECT_EQ(to_string(*parse_kv_policy("window")), "window,sinks=4,window=1024");
  EXPECT_EQ(to_string(*parse_kv_policy("window,window=64")), "window,sinks=4,window=64");
}

TEST(KvPolicy, RefusesWhatItDoesNotKnow) {
  const std::pair<const char*, const char*> cases[] = {
      {"h2o,budget=0%", "1% to 100%"},
      {"h2o,budget=101%", "1% to 100%"},
      {"h2o,budget=-5%", "1% to 100%"},
      {"h2o,budget=%", "no whole"},
      {"h2o,budget=20%x", "no whole"},
      {"h2o,recent=20%", "no whole"},
      {"h2o,budget=24", "multiple of 16"},
      {"h2o,budget=64,recent=64", "recent must be a multiple of 16 in [0, 48], got 64"},
      {"h2o,pool=3", "pool=3"},
      {"quest,budget=20%", "no whole"},
      {"snapkv,budget=64,window=64", "window must be a multiple of 16 in [16, 48], got 64"},
      {"snapkv,window=20", "multiple of 16"},
      {"snapkv,pool=4", "odd"},
      {"snapkv,pool=65", "63"},
      {"snapkv,sinks=4", "sinks=4"},
      {"", "there are full, window, quest, h2o, snapkv"},
      {"Window", "there are full, window"},
      {"full,sinks=4", "sinks=4"},
      {"window,", "''"},
      {"window,budget=3", "budget=3"},
      {"window,sinks", "no whole number"},
      {"window,sinks=", "no whole"},
      {"window,sinks=4x", "no whole"},
      {"window,sinks=-1", "sinks"},
      {"window,sinks=99999999999", "no whole"},
      {"window,window=0", "window"},
      {"window,window=40", "multiple of 16"},
      {"window,sinks=1025", "1024"},
      {"quest,budget=16", "budget"},
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

constexpr KvPolicy kCompacting[] = {
    {.type = KvPolicyType::kH2o, .budget = 64},
    {.type = KvPolicyType::kH2o, .budget = 256, .recent = 208},
    {.type = KvPolicyType::kH2o, .budget = 512},
    {.type = KvPolicyType::kH2o, .share = 30},
    {.type = KvPolicyType::kH2o, .share = 60, .recent = 32},
    {.type = KvPolicyType::kSnapKv, .budget = 64, .observed = 16},
    {.type = KvPolicyType::kSnapKv, .budget = 160, .observed = 32, .pool = 5},
};

// Steps as long as may be, and what is in the slots behind each.
TEST(KvPolicy, CompactionsHappenAtFixedNumbersOfTokens) {
  for (const KvPolicy& policy : kCompacting) {
    for (const int prompt : {1, 40, 95, 96, 97, 300, 1000, 1013}) {
      SCOPED_TRACE(testing::Message() << to_string(policy) << " prompt " << prompt);
      int slots = 0, most = 0, num_compactions = 0;
      for (int n = 0; n < 1200;) {
        const int end = policy.step_end(n, prompt);
        ASSERT_GT(end, n);
        for (int m = n + 1; m < std::min(end, 1200); ++m)
          ASSERT_TRUE(policy.compaction(m, prompt).is_none()) << m;
        if (end >= 1200) break;
        slots += end - n;
        most = std::max(most, slots);
        n = end;
        const KvCompaction compaction = policy.compaction(n, prompt);
        if (!compaction.is_none()) {
          ++num_compactions;
          EXPECT_EQ(compaction.from % kBlockSize, 0);
          EXPECT_EQ(compaction.to % kBlockSize, 0);
          EXPECT_GT(compaction.from, compaction.to);
          EXPECT_LE(compaction.from, slots);
          EXPECT_EQ(compaction.to, policy.num_targets(prompt));
          EXPECT_GE(policy.first_vote(prompt), compaction.to) << "what moves is shared with nobody";
          EXPECT_GT(n, policy.first_vote(prompt));
          EXPECT_LE(n, policy.end_of_votes(prompt));
          slots -= compaction.num_dropped();
        } else {
          EXPECT_EQ(n, policy.first_vote(prompt));
        }
        ASSERT_EQ(policy.num_slots(n, prompt), slots) << n;
        ASSERT_EQ(policy.num_slots(n + 1, prompt), policy.compaction(n + 1, prompt).is_none()
                                                       ? slots + 1
                                                       : policy.num_slots(n + 1, prompt));
      }
      if (policy.type == KvPolicyType::kH2o) {
        EXPECT_GT(num_compactions, 0);
        EXPECT_LE(most, policy.max_voted_slots(prompt));
      } else {
        EXPECT_EQ(num_compactions, prompt >= policy.budget + kBlockSize);
      }
    }
  }
}

TEST(KvPolicy, ABudgetMayBeAShareOfThePrompt) {
  const KvPolicy fifth = *parse_kv_policy("h2o,budget=20%");
  EXPECT_EQ(fifth.max_blocks(10'000, 512), 2000 / kBlockSize + 1);
  EXPECT_EQ(fifth.first_vote(10'000), 1008) << "half of it is recent";
  EXPECT_EQ(fifth.max_voted_slots(10'000), 2000 + kBlockSize);
  EXPECT_EQ(fifth.max_voted_slots(10), 128 + kBlockSize) << "the least that a share is";
  EXPECT_EQ(parse_kv_policy("h2o,budget=96")->max_blocks(10'000, 512), 7);
  EXPECT_EQ(parse_kv_policy("snapkv")->max_blocks(10'000, 512), 625);
}

TEST(KvPolicy, WhatIsVotedOnIsShared) {
  const KvPolicy h2o{.type = KvPolicyType::kH2o, .budget = 64};
  EXPECT_EQ(h2o.num_exact_tokens(1000), 32);
  const KvPolicy snapkv{.type = KvPolicyType::kSnapKv, .budget = 64, .observed = 16};
  EXPECT_EQ(snapkv.num_exact_tokens(1000), 984);
  EXPECT_EQ(snapkv.num_exact_tokens(64), KvPolicy::kUnbounded) << "it keeps all of it";
  EXPECT_EQ(snapkv.num_slots(1000, 1000), 64 + 8) << "the window begins in a block";
  EXPECT_EQ(snapkv.num_slots(1100, 1000), 164 + 8);
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
