#include "engine/disk_prefixes.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "support/engine_harness.h"
#include "support/scratch_folder.h"

namespace dunlin {
namespace {

namespace fs = std::filesystem;
using testing::CoreHarness;
using testing::expected_output;
using testing::make_request;
using testing::random_prompt;

constexpr std::chrono::seconds kPatience{20};

class DiskPrefixesTest : public ::testing::Test {
 protected:
  std::unique_ptr<DiskTier> open(const std::vector<int>& windows) {
    const testing::FakeModel model(windows);
    DiskTierConfig config;
    config.dir = folder_.path();
    config.max_bytes = 64 << 20;
    config.identity = {static_cast<std::uint8_t>(windows.size()),
                       static_cast<std::uint8_t>(windows[0])};
    config.payload_bytes =
        static_cast<std::int64_t>(windows.size()) * model.kv_layout().block_bytes();
    config.warn = [](const std::string&) {};
    auto tier = DiskTier::open(config);
    EXPECT_TRUE(tier && (*tier)->flush(kPatience));
    return std::move(*tier);
  }
  // The request's outcome on an engine of its own over `tier`.
  static TokenOutput run(DiskTier& tier, const std::vector<int>& windows, EngineRequest request,
                         int chunk = 64) {
    CoreHarness harness(windows, {.max_context = 512, .max_batch_tokens = chunk}, 120, &tier);
    const auto expected = expected_output(windows, request.prompt, request.sampling.max_tokens);
    const RequestId id = harness.add(std::move(request));
    harness.run_all();
    EXPECT_EQ(harness.tokens(id), expected);
    EXPECT_TRUE(tier.flush(kPatience));
    return harness.last(id);
  }

  ScratchFolder folder_;
};

TEST_F(DiskPrefixesTest, ReadsWhatAnotherProcessComputed) {
  for (const auto& windows : {std::vector<int>{0}, {0, 24}, {24}, {0, 24, 40}}) {
    SCOPED_TRACE(::testing::PrintToString(windows));
    const EngineRequest request = make_request(random_prompt(1, 100), 20);
    {
      const auto tier = open(windows);
      EXPECT_EQ(run(*tier, windows, request, 33).stats.num_cached_tokens, 0);
      EXPECT_EQ(tier->stats().num_written, 7u) << "100 + 19 computed tokens";
    }
    const auto tier = open(windows);
    EXPECT_EQ(run(*tier, windows, request).stats.num_cached_tokens, 96);
    EXPECT_EQ(tier->stats().num_read, 6u);
    // Half of it, then other tokens; and the same under a salt.
    EngineRequest other = request;
    std::fill(other.prompt.begin() + 50, other.prompt.end(), 3);
    EXPECT_EQ(run(*tier, windows, other).stats.num_cached_tokens, 48);
    other.cache_salt = "salt";
    EXPECT_EQ(run(*tier, windows, other).stats.num_cached_tokens, 0);
    EXPECT_EQ(run(*tier, windows, other).stats.num_cached_tokens, 96);
  }
}

TEST_F(DiskPrefixesTest, ComputesFromWhereAFileIsMissingOrBroken) {
  const std::vector<int> windows{0, 24};
  const EngineRequest request = make_request(random_prompt(1, 200), 20);
  const auto tier = open(windows);
  run(*tier, windows, request);
  // All files but a random half; whichever are gone, the answer is the same.
  int num_gone = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
    if (entry.path().extension() == ".kv" && ++num_gone % 2 == 0)
      fs::resize_file(entry.path(), entry.file_size() - 1);
  }
  EXPECT_LT(run(*tier, windows, request).stats.num_cached_tokens, 192);
  EXPECT_GE(tier->stats().num_bad, 1u);
}

TEST_F(DiskPrefixesTest, AResetForgetsTheDiskAndWhatRunsIsNotWritten) {
  const std::vector<int> windows{0};
  const auto tier = open(windows);
  CoreHarness harness(windows, {.max_context = 512}, 120, tier.get());
  const RequestId id = harness.add(make_request(random_prompt(1, 100), 60));
  for (int i = 0; i < 5; ++i) harness.step();
  harness.core().reset_prefix_cache();
  harness.run_all();
  EXPECT_EQ(harness.tokens(id).size(), 60u);
  ASSERT_TRUE(tier->flush(kPatience));
  EXPECT_EQ(tier->stats().num_bytes, 0);
  EXPECT_EQ(run(*tier, windows, make_request(random_prompt(1, 100), 5)).stats.num_cached_tokens, 0);
}

TEST_F(DiskPrefixesTest, ScoredPromptsBypassTheDisk) {
  const std::vector<int> windows{0};
  const auto tier = open(windows);
  EngineRequest request = make_request(random_prompt(1, 100), 5);
  request.echo_logprobs = true;
  run(*tier, windows, request);
  EXPECT_EQ(tier->stats().num_written, 0u);
  request.echo_logprobs = false;
  run(*tier, windows, request);
  request.echo_logprobs = true;
  EXPECT_EQ(run(*tier, windows, request).stats.num_cached_tokens, 0);
}

// While others run, a step reads for a while only, and the rest in the next ones.
TEST_F(DiskPrefixesTest, ReadsALongPrefixOverSeveralSteps) {
  const std::vector<int> windows{0, 24};
  const auto tier = open(windows);
  const EngineRequest request = make_request(random_prompt(1, 100), 20);
  run(*tier, windows, request);
  testing::FakeModel model(windows);
  KvCacheManager kv(model.kv_layout(), 100, true);
  KvStorage storage(model.kv_layout(), 100);
  DiskPrefixes disk(*tier, kv, storage, std::chrono::nanoseconds(0));
  const auto seq = make_sequence(request, 61);
  seq->kv = kv.make_sequence(200);
  int num_steps = 0;
  for (; num_steps < 20; ++num_steps) {
    disk.begin_step();
    EXPECT_EQ(kv.match_prefix(seq->kv, seq->tokens), 16 * num_steps);
    const bool done = disk.extend(*seq, true);
    EXPECT_EQ(seq->kv.num_computed_tokens(), std::min(16 * (num_steps + 1), 96));
    if (done) break;
    kv.free(seq->kv);
  }
  EXPECT_EQ(num_steps, 5);
  kv.free(seq->kv);
  kv.reset_prefix_cache();
  disk.begin_step();
  EXPECT_EQ(kv.match_prefix(seq->kv, seq->tokens), 0);
  EXPECT_TRUE(disk.extend(*seq, false)) << "alone there is nobody to wait";
  EXPECT_EQ(seq->kv.num_computed_tokens(), 96);
  kv.free(seq->kv);
}

TEST_F(DiskPrefixesTest, DoesNotReadADiskThatIsSlowerThanTheModel) {
  const std::vector<int> windows{0};
  const auto tier = open(windows);
  const EngineRequest request = make_request(random_prompt(1, 100), 20);
  run(*tier, windows, request);
  testing::FakeModel model(windows);
  KvCacheManager kv(model.kv_layout(), 100, true);
  KvStorage storage(model.kv_layout(), 100);
  DiskPrefixes disk(*tier, kv, storage, DiskPrefixes::kMaxReadTime, 0);
  const auto seq = make_sequence(request, 61);
  const auto hit = [&] {
    seq->kv = kv.make_sequence(200);
    disk.begin_step();
    EXPECT_TRUE(disk.extend(*seq, false));
    const int length = seq->kv.num_computed_tokens();
    kv.free(seq->kv);
    kv.reset_prefix_cache();
    return length;
  };
  EXPECT_EQ(hit(), 96);
  disk.note_prefill(1000, 1e-12);
  EXPECT_EQ(hit(), 0);
  for (int i = 0; i < 50; ++i) disk.note_prefill(1000, 1000);
  EXPECT_EQ(hit(), 96);
}

}  // namespace
}  // namespace dunlin
