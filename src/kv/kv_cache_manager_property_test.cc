// Random operations on many sequences against a model of the arena: each slot remembers the
// history of the token written to it. Whatever happens, a sequence must find its own history in
// every slot that a query may still read.
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

struct TestSequence {
  KvSequence kv;
  int salt = 0;
  std::vector<TokenId> tokens;
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
    seq->kv = manager_.make_sequence(kMaxTokens, below(8) > 0, salt);
    num_hits_ += manager_.match_prefix(seq->kv, seq->tokens) > 0;
    EXPECT_LT(seq->kv.num_computed_tokens(), length);
    seqs_.push_back(std::move(seq));
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
    const auto computed = parent.tokens.begin() + parent.kv.num_computed_tokens();
    child->tokens.assign(parent.tokens.begin(), computed);
    seqs_.push_back(std::move(child));
  }

  void truncate() {
    if (seqs_.empty()) return;
    TestSequence& seq = any();
    const int wanted = below(seq.kv.num_computed_tokens() + 1);
    const int kept = manager_.truncate(seq.kv, wanted);
    EXPECT_TRUE(kept == wanted || kept == 0);
    seq.tokens.resize(static_cast<std::size_t>(wanted));
    if (kept == 0 && wanted > 0) manager_.match_prefix(seq.kv, seq.tokens);
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
    const int target = std::min(kMaxTokens, computed + 1 + below(40));
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
    const int kept = computed + 1 + below(target - computed);
    manager_.commit(seq.kv, seq.tokens, below(3) == 0 ? kept : target);
  }

  void check_contents(const TestSequence& seq) {
    const int computed = seq.kv.num_computed_tokens();
    for (int g = 0; g < manager_.num_groups(); ++g) {
      const int window = windows_[static_cast<std::size_t>(g)];
      const int first = window == 0 ? 0 : std::max(0, computed - window + 1);
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
};

void run_cases(const std::vector<int>& windows, int min_blocks) {
  int num_hits = 0;
  int num_refusals = 0;
  for (unsigned seed = 0; seed < 40 && !testing::Test::HasFatalFailure(); ++seed) {
    const int num_blocks = min_blocks + static_cast<int>(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed << " blocks " << num_blocks);
    RandomOperations operations(seed, windows, num_blocks);
    for (int i = 0; i < 250 && !testing::Test::HasFatalFailure(); ++i) operations.step();
    operations.finish();
    num_hits += operations.num_hits();
    num_refusals += operations.num_refusals();
  }
  EXPECT_GT(num_hits, 40);
  EXPECT_GT(num_refusals, 40);
}

TEST(KvCacheManagerProperty, FullAttentionSurvivesRandomOperations) { run_cases({0}, 12); }
TEST(KvCacheManagerProperty, WindowsAndFullAttentionSurviveRandomOperations) {
  run_cases({0, 20, 48}, 25);
}
TEST(KvCacheManagerProperty, WindowsAloneSurviveRandomOperations) { run_cases({8, 32}, 10); }

}  // namespace
}  // namespace dunlin
