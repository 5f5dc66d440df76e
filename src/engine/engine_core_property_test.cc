// Random arrivals, lengths, priorities, cancels, pool sizes and budgets. After each step the
// harness checks every invariant of scheduler, blocks and index; at the end every request that
// was left alone has its solo answer, and nothing is held.
#include <random>

#include <gtest/gtest.h>

#include "support/engine_harness.h"
#include "support/scratch_folder.h"

namespace dunlin {
namespace {

using testing::CoreHarness;
using testing::expected_output;
using testing::make_request;

struct Request {
  std::vector<TokenId> prompt;
  int max_tokens = 0;
  bool was_aborted = false;
};

class RandomLoad {
 public:
  RandomLoad(unsigned seed, std::vector<int> windows, DiskTier* disk)
      : random_(seed), windows_(std::move(windows)), disk_(disk) {
    EngineConfig config;
    config.max_context = 64 + below(100);
    config.max_seqs = 1 + below(8);
    config.max_batch_tokens = std::max(config.max_seqs, 1 + below(60));
    config.prefix_cache = below(5) > 0;
    max_context_ = config.max_context;
    const testing::FakeModel model(windows_);
    // From just enough for one to plenty.
    const int one = KvCacheManager::max_blocks_per_sequence(model.kv_layout(), config.max_context,
                                                            config.max_batch_tokens);
    harness_ = std::make_unique<CoreHarness>(windows_, config,
                                             one + below(below(3) == 0 ? 3 * one : one / 2 + 1),
                                             below(2) == 0 ? disk : nullptr);
    for (int i = 0; i < 3; ++i) prefixes_.push_back(testing::random_prompt(random_(), 64));
  }

  void run() {
    for (int i = 0; i < 120; ++i) {
      if (below(3) == 0) submit();
      if (below(12) == 0) abort();
      if (below(100) == 0) harness_->core().reset_prefix_cache();
      harness_->step();
      if (i % 10 == 0) disk_->flush(std::chrono::seconds(20));
    }
    harness_->run_all();
    check();
  }

  std::uint64_t num_preemptions() { return harness_->core().stats().num_preemptions; }
  std::uint64_t num_hits() { return harness_->core().stats().prefix_hits; }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  void submit() {
    Request request;
    const auto& prefix = prefixes_[static_cast<std::size_t>(below(3))];
    request.prompt.assign(prefix.begin(), prefix.begin() + below(60));
    const auto tail = testing::random_prompt(random_(), 1 + below(20));
    request.prompt.insert(request.prompt.end(), tail.begin(), tail.end());
    request.prompt.resize(std::min(request.prompt.size(), std::size_t(max_context_ - 1)));
    const int room = max_context_ - static_cast<int>(request.prompt.size());
    request.max_tokens = 1 + below(std::min(room, 50));
    EngineRequest engine_request = make_request(request.prompt, request.max_tokens);
    engine_request.priority = below(4) == 0 ? below(3) : 0;
    engine_request.echo_logprobs = below(6) == 0;
    engine_request.echo_start = below(static_cast<int>(request.prompt.size()));
    if (below(6) == 0) engine_request.cache_salt = "salt";
    requests_[harness_->add(engine_request)] = request;
  }

  void abort() {
    if (requests_.empty()) return;
    const RequestId id = 1 + static_cast<RequestId>(below(static_cast<int>(requests_.size())));
    if (harness_->is_finished(id)) return;
    harness_->abort(id);
    requests_[id].was_aborted = true;
    EXPECT_EQ(harness_->last(id).finish, FinishReason::kCancelled);
  }

  void check() {
    const EngineStats& stats = harness_->core().stats();
    EXPECT_EQ(stats.num_free_blocks, stats.num_blocks);
    for (const auto& [id, request] : requests_) {
      ASSERT_TRUE(harness_->is_finished(id)) << id;
      auto expected = expected_output(windows_, request.prompt, request.max_tokens);
      const auto tokens = harness_->tokens(id);
      if (request.was_aborted) expected.resize(tokens.size());
      ASSERT_EQ(tokens, expected) << "request " << id;
    }
  }

  std::mt19937 random_;
  std::vector<int> windows_;
  DiskTier* disk_;
  int max_context_ = 0;
  std::unique_ptr<CoreHarness> harness_;
  std::vector<std::vector<TokenId>> prefixes_;
  std::map<RequestId, Request> requests_;
};

std::unique_ptr<DiskTier> open_disk(const std::string& dir, const std::vector<int>& windows) {
  const testing::FakeModel model(windows);
  DiskTierConfig config;
  config.dir = dir;
  config.payload_bytes =
      static_cast<std::int64_t>(windows.size()) * model.kv_layout().block_bytes();
  config.max_bytes = 200 * config.payload_bytes;
  config.warn = [](const std::string& line) { ADD_FAILURE() << line; };
  return DiskTier::open(config).value();
}

void run_cases(const std::vector<int>& windows, unsigned first_seed) {
  const ScratchFolder folder;
  const auto disk = open_disk(folder.path(), windows);
  std::uint64_t num_preemptions = 0;
  std::uint64_t num_hits = 0;
  for (unsigned seed = first_seed; seed < first_seed + 60; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    // The second time what the first wrote is on disk.
    for (int i = 0; i < 2; ++i) {
      RandomLoad load(seed, windows, disk.get());
      load.run();
      num_preemptions += load.num_preemptions();
      num_hits += load.num_hits();
      if (::testing::Test::HasFatalFailure()) return;
      ASSERT_TRUE(disk->flush(std::chrono::seconds(60)));
    }
  }
  EXPECT_GT(num_preemptions, 50u);
  EXPECT_GT(num_hits, 1000u);
  EXPECT_GT(disk->stats().num_read, 10u);
}

TEST(EngineCoreProperty, FullAttentionKeepsEveryPromiseUnderRandomLoad) { run_cases({0}, 0); }
TEST(EngineCoreProperty, WindowsKeepEveryPromiseUnderRandomLoad) { run_cases({0, 20, 20}, 1000); }
TEST(EngineCoreProperty, WindowsAloneKeepEveryPromiseUnderRandomLoad) { run_cases({40}, 2000); }

}  // namespace
}  // namespace dunlin
