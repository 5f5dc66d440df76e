// Random operations on many sequences against a model of the arena: each slot remembers the
// history of the token written to it. Whatever happens, a sequence must find its own history in
// every slot that a query may still read. Where a policy compacts, which tokens stay is drawn by
// lot.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kv/kv_cache_manager.h"

namespace dunlin {
namespace {

constexpr int kMaxTokens = 160;

constexpr KvPolicy kPolicies[] = {
    {},
    {},
    {.type = KvPolicyType::kH2o, .budget = 48},
    {.type = KvPolicyType::kH2o, .share = 50},
    {.type = KvPolicyType::kSnapKv, .budget = 48, .observed = 16},
};

struct TestSequence {
  KvSequence kv;
  int salt = 0;
  KvPolicy policy;
  int num_prompt = 0;
  std::vector<TokenId> tokens;
  std::vector<std::uint64_t> slots;  // of full attention: whose history each holds
};

class RandomOperations {
 public:
  RandomOperations(unsigned seed, std::vector<int> windows, int num_blocks)
      : random_(seed),
        windows_(std::move(windows)),
        manager_(KvLayout::make(windows_, 1, 8, 8, KvFormat::kF16), num_blocks, true),
        arena_(static_cast<std::size_t>(num_blocks) * kBlockSize, 0) {}

  void step() {
    switch (below(10)) {
      case 0:
      case 1: start(); break;
      case 2: stop(); break;
      case 3: fork(); break;
      case 4: below(4) == 0 ? reset() : truncate(); break;
      default: advance(); break;
    }
    std::vector<const KvSequence*> all;
    for (const auto& seq : seqs_) all.push_back(&seq->kv);
    manager_.check_integrity(all);
    for (const auto& seq : seqs_) check_contents(*seq);
  }

  void finish() {
    while (!seqs_.empty()) stop();
    EXPECT_EQ(manager_.num_free_blocks(), manager_.num_blocks());
  }

  int num_hits() const { return num_hits_; }
  int num_refusals() const { return num_refusals_; }
  int num_compactions() const { return num_compactions_; }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  TestSequence& any() { return *seqs_[static_cast<std::size_t>(below(int(seqs_.size())))]; }

  // Few different tokens and long equal runs make shared prefixes likely.
  TokenId next_token() { return below(40) == 0 ? below(3) : 7; }

  // Of the token at `position`: nothing of another salt may ever stand in its slot.
  static std::uint64_t history(const TestSequence& seq, int position) {
    std::uint64_t hash = 1 + static_cast<std::uint64_t>(seq.salt);
    for (int i = 0; i <= position; ++i) {
      hash = (hash ^ static_cast<std::uint64_t>(seq.tokens[static_cast<std::size_t>(i)] + 1)) *
             0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    return hash;
  }

  void start() {
    if (seqs_.size() > 6) return;
    auto seq = std::make_unique<TestSequence>();
    const int length = 1 + below(90);
    for (int i = 0; i < length; ++i) seq->tokens.push_back(next_token());
    seq->salt = std::max(0, below(6) - 3);
    const CacheSalt salt(seq->salt == 0 ? "" : std::to_string(seq->salt));
    seq->policy = kPolicies[below(static_cast<int>(std::size(kPolicies)))];
    seq->num_prompt = length;
    seq->kv = manager_.make_sequence(kMaxTokens, below(8) > 0, salt, seq->policy, length);
    num_hits_ += manager_.match_prefix(seq->kv, seq->tokens) > 0;
    EXPECT_LT(seq->kv.num_computed_tokens(), length);
    fill_slots(*seq);
    seqs_.push_back(std::move(seq));
  }

  // What a sequence holds that has not compacted.
  static void fill_slots(TestSequence& seq) {
    seq.slots.clear();
    for (int p = 0; p < seq.kv.num_computed_tokens(); ++p) seq.slots.push_back(history(seq, p));
  }

  void stop() {
    if (seqs_.empty()) return;
    const auto it = seqs_.begin() + below(static_cast<int>(seqs_.size()));
    manager_.free((*it)->kv);
    seqs_.erase(it);
  }

  void fork() {
    if (seqs_.empty() || seqs_.size() > 6) return;
    TestSequence& parent = any();
    auto child = std::make_unique<TestSequence>();
    child->kv = manager_.fork(parent.kv, kMaxTokens);
    child->salt = parent.salt;
    child->policy = parent.policy;
    child->num_prompt = parent.num_prompt;
    child->slots = parent.slots;
    const auto computed = parent.tokens.begin() + parent.kv.num_computed_tokens();
    child->tokens.assign(parent.tokens.begin(), computed);
    seqs_.push_back(std::move(child));
  }

  void truncate() {
    if (seqs_.empty()) return;
    TestSequence& seq = any();
    const int computed = seq.kv.num_computed_tokens();
    const int wanted = below(computed + 1);
    const int kept = manager_.truncate(seq.kv, wanted);
    EXPECT_TRUE(kept == wanted || kept == 0);
    EXPECT_TRUE(kept == wanted || seq.policy.compacts() || has_windows());
    if (kept > 0) seq.slots.resize(seq.slots.size() - static_cast<std::size_t>(computed - wanted));
    seq.tokens.resize(static_cast<std::size_t>(wanted));
    if (kept == 0 && wanted > 0) manager_.match_prefix(seq.kv, seq.tokens);
    if (kept == 0) fill_slots(seq);
  }

  // Cached or not, what a sequence holds is its own to read; nothing is found afterwards.
  void reset() {
    const int cached = manager_.num_cached_blocks();
    const int num_free = manager_.num_free_blocks();
    EXPECT_EQ(manager_.reset_prefix_cache().num_dropped_blocks, cached);
    EXPECT_EQ(manager_.num_cached_blocks(), 0);
    EXPECT_EQ(manager_.num_free_blocks(), num_free);
    if (seqs_.empty()) return;
    const TestSequence& known = any();
    KvSequence fresh = manager_.make_sequence(
        kMaxTokens, true, CacheSalt(known.salt == 0 ? "" : std::to_string(known.salt)));
    EXPECT_EQ(manager_.match_prefix(fresh, known.tokens), 0);
  }

  void advance() {
    if (seqs_.empty()) return;
    TestSequence& seq = any();
    const int computed = seq.kv.num_computed_tokens();
    if (computed == kMaxTokens) return;
    const int target = std::min(
        {kMaxTokens, computed + 1 + below(40), seq.policy.step_end(computed, seq.num_prompt)});
    while (static_cast<int>(seq.tokens.size()) < target) seq.tokens.push_back(next_token());
    const int needed = manager_.num_new_blocks(seq.kv, target);
    const int num_free = manager_.num_free_blocks();
    const bool fits = manager_.allocate(seq.kv, target);
    EXPECT_EQ(fits, needed <= num_free);
    num_refusals_ += !fits;
    if (!fits) return;
    for (const BlockCopy& copy : manager_.copies()) {
      std::copy_n(arena_.begin() + copy.from * kBlockSize, kBlockSize,
                  arena_.begin() + copy.to * kBlockSize);
    }
    manager_.clear_copies();
    for (int g = 0; g < manager_.num_groups(); ++g) {
      for (int p = computed; p < target; ++p) {
        arena_[static_cast<std::size_t>(seq.kv.table(g).slot(p))] = history(seq, p);
      }
    }
    // Speculation computes more than it keeps.
    const int kept = below(3) == 0 ? computed + 1 + below(target - computed) : target;
    for (int p = computed; p < kept; ++p) seq.slots.push_back(history(seq, p));
    const KvCompaction compaction = seq.policy.compaction(kept, seq.num_prompt);
    if (!compaction.is_none()) compact(seq, compaction);
    manager_.commit(seq.kv, seq.tokens, kept);
    EXPECT_EQ(seq.kv.votes().is_empty(), !has_full() ||
                                             kept <= seq.policy.first_vote(seq.num_prompt) ||
                                             kept >= seq.policy.end_of_votes(seq.num_prompt));
  }

  std::uint64_t& slot(TestSequence& seq, int group_idx, int i) {
    const std::int32_t block = seq.kv.table(group_idx)[i / kBlockSize];
    return arena_[static_cast<std::size_t>(block * kBlockSize + i % kBlockSize)];
  }

  // As the model does: the tokens that stay behind go where others leave.
  void compact(TestSequence& seq, const KvCompaction& compaction) {
    ++num_compactions_;
    const auto [from, to, pool] = compaction;
    std::vector<int> targets;
    for (int i = 0; i < to; ++i) targets.push_back(i);
    std::shuffle(targets.begin(), targets.end(), random_);
    for (int i = to; i < from; ++i) {
      if (targets.empty() || below(2) == 0) continue;
      for (int g = 0; g < manager_.num_groups(); ++g)
        if (windows_[static_cast<std::size_t>(g)] == 0)
          slot(seq, g, targets.back()) = slot(seq, g, i);
      seq.slots[static_cast<std::size_t>(targets.back())] = seq.slots[static_cast<std::size_t>(i)];
      targets.pop_back();
    }
    seq.slots.erase(seq.slots.begin() + to, seq.slots.begin() + from);
  }

  bool has_full() const { return std::count(windows_.begin(), windows_.end(), 0) > 0; }
  bool has_windows() const {
    return std::any_of(windows_.begin(), windows_.end(), [](int window) { return window > 0; });
  }

  void check_contents(TestSequence& seq) {
    const int computed = seq.kv.num_computed_tokens();
    for (int g = 0; g < manager_.num_groups(); ++g) {
      const int window = windows_[static_cast<std::size_t>(g)];
      if (window == 0) {
        ASSERT_EQ(seq.kv.num_dropped_tokens() + static_cast<int>(seq.slots.size()), computed);
        for (int i = 0; i < static_cast<int>(seq.slots.size()); ++i)
          ASSERT_EQ(slot(seq, g, i), seq.slots[static_cast<std::size_t>(i)])
              << "group " << g << " slot " << i;
        continue;
      }
      const int first = std::max(0, computed - window + 1);
      for (int p = first; p < computed; ++p) {
        ASSERT_EQ(arena_[static_cast<std::size_t>(seq.kv.table(g).slot(p))], history(seq, p))
            << "group " << g << " position " << p;
      }
    }
  }

  std::mt19937 random_;
  std::vector<int> windows_;
  KvCacheManager manager_;
  std::vector<std::uint64_t> arena_;
  std::vector<std::unique_ptr<TestSequence>> seqs_;
  int num_hits_ = 0;
  int num_refusals_ = 0;
  int num_compactions_ = 0;
};

void run_cases(const std::vector<int>& windows, int min_blocks) {
  int num_hits = 0;
  int num_refusals = 0;
  int num_compactions = 0;
  for (unsigned seed = 0; seed < 40 && !testing::Test::HasFatalFailure(); ++seed) {
    const int num_blocks = min_blocks + static_cast<int>(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed << " blocks " << num_blocks);
    RandomOperations operations(seed, windows, num_blocks);
    for (int i = 0; i < 250 && !testing::Test::HasFatalFailure(); ++i) operations.step();
    operations.finish();
    num_hits += operations.num_hits();
    num_refusals += operations.num_refusals();
    num_compactions += operations.num_compactions();
  }
  EXPECT_GT(num_hits, 40);
  EXPECT_GT(num_refusals, 40);
  const bool has_full = std::count(windows.begin(), windows.end(), 0) > 0;
  EXPECT_GT(num_compactions, has_full ? 100 : 0);
}

TEST(KvCacheManagerProperty, FullAttentionSurvivesRandomOperations) { run_cases({0}, 12); }
TEST(KvCacheManagerProperty, WindowsAndFullAttentionSurviveRandomOperations) {
  run_cases({0, 20, 48}, 25);
}
TEST(KvCacheManagerProperty, WindowsAloneSurviveRandomOperations) { run_cases({8, 32}, 10); }

}  // namespace
}  // namespace dunlin
