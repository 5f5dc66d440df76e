// Whole lives of an engine by chance: settings of every kind, and requests with priorities,
// tenants, choices, deadlines and cancels. After each step the harness checks every invariant of
// scheduler, blocks and index, the bound on overtaking included; at the end every request that was
// left alone has its solo answer, nothing is held, and it took a bounded number of steps. A failure
// shrinks to a short list of events.
#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "support/engine_harness.h"

namespace dunlin {
namespace {

using testing::CoreHarness;
using testing::expected_output;
using testing::make_request;

constexpr int kMaxContext = 96;

struct Event {
  enum Kind { kSubmit, kAbort, kExpire, kStep } kind = kStep;
  int prefix = 0;  // which of three, and how much of it
  int prefix_length = 0;
  int tail_length = 1;
  int max_tokens = 1;
  int priority = 0;
  int tenant = 0;
  int n = 1;
  bool echo = false;
  int deadline_ms = 0;
  int queue_timeout_ms = 0;
  int target = 0;  // of kAbort
};

std::ostream& operator<<(std::ostream& out, const Event& e) {
  static constexpr const char* kNames[] = {"submit", "abort", "expire", "step"};
  out << kNames[e.kind];
  if (e.kind == Event::kAbort) return out << "(" << e.target << ")";
  if (e.kind != Event::kSubmit) return out;
  return out << "(prefix " << e.prefix << ":" << e.prefix_length << " +" << e.tail_length
             << ", max " << e.max_tokens << ", priority " << e.priority << ", tenant " << e.tenant
             << ", n " << e.n << ", echo " << e.echo << ", deadline " << e.deadline_ms << ", queue "
             << e.queue_timeout_ms << ")";
}

rc::Gen<int> below(int n) { return rc::gen::inRange(0, n); }

rc::Gen<Event> any_event() {
  return rc::gen::build<Event>(
      rc::gen::set(
          &Event::kind,
          rc::gen::weightedElement<Event::Kind>(
              {{5, Event::kSubmit}, {1, Event::kAbort}, {1, Event::kExpire}, {9, Event::kStep}})),
      rc::gen::set(&Event::prefix, below(3)), rc::gen::set(&Event::prefix_length, below(40)),
      rc::gen::set(&Event::tail_length, rc::gen::inRange(1, 20)),
      rc::gen::set(&Event::max_tokens, rc::gen::inRange(1, 30)),
      rc::gen::set(&Event::priority, below(3)), rc::gen::set(&Event::tenant, below(3)),
      rc::gen::set(&Event::n, rc::gen::weightedOneOf<int>(
                                  {{4, rc::gen::just(1)}, {1, rc::gen::inRange(2, 5)}})),
      rc::gen::set(&Event::echo, rc::gen::map(below(12), [](int i) { return i == 0; })),
      rc::gen::set(&Event::deadline_ms,
                   rc::gen::weightedOneOf<int>({{6, rc::gen::just(0)}, {1, rc::gen::just(500)}})),
      rc::gen::set(&Event::queue_timeout_ms,
                   rc::gen::weightedOneOf<int>({{6, rc::gen::just(0)}, {1, rc::gen::just(500)}})),
      rc::gen::set(&Event::target, below(40)));
}

EngineConfig any_config() {
  EngineConfig config;
  config.max_context = kMaxContext;
  config.max_seqs = *rc::gen::inRange(1, 9).as("max_seqs");
  config.max_batch_tokens = std::max(config.max_seqs, *rc::gen::inRange(1, 70).as("batch tokens"));
  config.prefix_cache = *below(5).as("prefix cache, 0: none") > 0;
  config.schedule =
      *rc::gen::element(SchedulePolicy::kFcfs, SchedulePolicy::kPriority, SchedulePolicy::kPrefix);
  config.max_overtakes = *below(4).as("max_overtakes");
  // Measured times decide little here, but every path is walked.
  config.target_itl_ms = *rc::gen::element(0.0, 0.0, 1e-3, 1.0).as("target_itl_ms");
  config.target_ttft_ms = *rc::gen::element(0.0, 0.0, 5.0).as("target_ttft_ms");
  const int num_tenants = *rc::gen::inRange(1, 4).as("tenants");
  for (int i = 0; i < num_tenants; ++i) config.tenant_shares.push_back(1 + i % 2);
  return config;
}

class Life {
 public:
  Life(std::vector<int> windows, const EngineConfig& config, int num_blocks)
      : windows_(std::move(windows)),
        num_tenants_(config.num_tenants()),
        harness_(windows_, config, num_blocks) {
    for (unsigned i = 0; i < 3; ++i) prefixes_.push_back(testing::random_prompt(i, 40));
  }

  void play(const Event& event) {
    switch (event.kind) {
      case Event::kSubmit: return submit(event);
      case Event::kAbort: return abort(event.target);
      case Event::kExpire: return expire();
      case Event::kStep: return harness_.step();
    }
  }

  // Every step advances somebody; what was preempted is computed again, and not for ever.
  EngineStats end() {
    const int most = 100 * (num_tokens_ + 10);
    for (int i = 0; harness_.core().has_work(); ++i) {
      RC_ASSERT(i < most);
      harness_.step();
    }
    const EngineStats& stats = harness_.core().stats();
    RC_ASSERT(stats.num_free_blocks == stats.num_blocks);
    RC_ASSERT(stats.num_running + stats.num_waiting == 0);
    for (const auto& [id, request] : requests_) {
      RC_ASSERT(harness_.is_finished(id));
      auto expected = expected_output(windows_, request.prompt, request.max_tokens);
      const auto tokens = harness_.tokens(id);
      if (request.may_end_early) expected.resize(std::min(expected.size(), tokens.size()));
      RC_ASSERT(tokens == expected);
    }
    return stats;
  }

 private:
  struct Request {
    std::vector<TokenId> prompt;
    int max_tokens = 0;
    bool may_end_early = false;
  };

  void submit(const Event& event) {
    Request request;
    const auto& prefix = prefixes_[static_cast<std::size_t>(event.prefix)];
    request.prompt.assign(prefix.begin(), prefix.begin() + event.prefix_length);
    const auto tail =
        testing::random_prompt(100 + static_cast<unsigned>(requests_.size()), event.tail_length);
    request.prompt.insert(request.prompt.end(), tail.begin(), tail.end());
    request.max_tokens = event.max_tokens;
    EngineRequest engine_request = make_request(request.prompt, request.max_tokens);
    engine_request.priority = event.priority;
    engine_request.tenant = event.tenant % num_tenants_;
    engine_request.echo_logprobs = event.echo;
    engine_request.deadline = std::chrono::milliseconds(event.deadline_ms);
    engine_request.queue_timeout = std::chrono::milliseconds(event.queue_timeout_ms);
    const RequestId first = harness_.add(engine_request, event.n);
    for (int i = 0; i < event.n; ++i) requests_[first + static_cast<RequestId>(i)] = request;
    num_tokens_ += event.n * static_cast<int>(request.prompt.size() + 30);
  }

  void abort(int target) {
    const RequestId id = 1 + static_cast<RequestId>(target);
    if (!requests_.contains(id) || harness_.is_finished(id)) return;
    requests_[id].may_end_early = true;
    harness_.abort(id);
    RC_ASSERT(harness_.last(id).finish == FinishReason::kCancelled);
  }

  // An hour passes: whatever has a time is over it.
  void expire() {
    std::vector<RequestId> open;
    for (const auto& [id, request] : requests_) {
      if (!harness_.is_finished(id)) open.push_back(id);
    }
    harness_.expire(EngineClock::now() + std::chrono::hours(1));
    for (const RequestId id : open) {
      if (!harness_.is_finished(id)) continue;
      requests_[id].may_end_early = true;
      const TokenOutput& last = harness_.last(id);
      RC_ASSERT(last.ended_by != TimeLimit::kNone);
      RC_ASSERT((last.finish == FinishReason::kLength && !harness_.tokens(id).empty()) ||
                (last.finish == FinishReason::kError && harness_.tokens(id).empty()));
    }
  }

  std::vector<int> windows_;
  int num_tenants_;
  CoreHarness harness_;
  std::vector<std::vector<TokenId>> prefixes_;
  std::map<RequestId, Request> requests_;
  int num_tokens_ = 0;
};

// Thousands of cases; RC_PARAMS of your own wins.
[[maybe_unused]] const int kManyCases = ::setenv("RC_PARAMS", "max_success=2000", 0);

TEST(Scheduling, KeepsEveryPromise) {
  std::uint64_t num_preemptions = 0, num_hits = 0, num_timed_out = 0, num_cancelled = 0;
  const bool held = rc::check([&] {
    const auto windows = *rc::gen::element(std::vector<int>{0}, std::vector<int>{0, 20, 20},
                                           std::vector<int>{40}, std::vector<int>{0, 33});
    const EngineConfig config = any_config();
    const testing::FakeModel model(windows);
    // From just enough for one to plenty.
    const int one = KvCacheManager::max_blocks_per_sequence(model.kv_layout(), kMaxContext,
                                                            config.max_batch_tokens);
    const int num_blocks =
        one + *rc::gen::oneOf(below(one / 2 + 1), below(3 * one)).as("more blocks");
    const auto events = *rc::gen::container<std::vector<Event>>(any_event());
    Life life(windows, config, num_blocks);
    for (const Event& event : events) life.play(event);
    const EngineStats stats = life.end();
    num_preemptions += stats.num_preemptions;
    num_hits += stats.prefix_hits;
    num_timed_out += stats.timed_out;
    num_cancelled += stats.finished_cancelled;
  });
  ASSERT_TRUE(held);
  EXPECT_GT(num_preemptions, 500u);
  EXPECT_GT(num_hits, 5000u);
  EXPECT_GT(num_timed_out, 500u);
  EXPECT_GT(num_cancelled, 500u);
}

}  // namespace
}  // namespace dunlin
