// What the engine's tests share: requests, expected outputs, and a core driven step by step.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "engine/engine_core.h"
#include "sampling/row_ops.h"
#include "support/fake_model.h"

namespace dunlin::testing {

inline std::vector<TokenId> random_prompt(unsigned seed, int length, int vocab_size = 61) {
  std::mt19937 random(seed);
  std::vector<TokenId> prompt;
  for (int i = 0; i < length; ++i) {
    prompt.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(vocab_size)));
  }
  return prompt;
}

// Greedy, no end token.
inline EngineRequest make_request(std::vector<TokenId> prompt, int max_tokens) {
  EngineRequest request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0;
  request.sampling.max_tokens = max_tokens;
  return request;
}

// What a FakeModel answers greedily, computed without any engine or cache.
inline std::vector<TokenId> expected_output(const std::vector<int>& windows,
                                            std::vector<TokenId> tokens, int max_tokens,
                                            const KvPolicy& policy = {}) {
  const FakeModel model(windows);
  const int num_prompt_tokens = static_cast<int>(tokens.size());
  std::vector<TokenId> output;
  for (int i = 0; i < max_tokens; ++i) {
    const auto row =
        fake_row(model.kv_layout(), tokens, model.limits().vocab_size, policy, num_prompt_tokens);
    output.push_back(row_argmax(row));
    tokens.push_back(output.back());
  }
  return output;
}

// An EngineCore on a FakeModel or another, and what came out of it. Checks integrity after each
// step.
class CoreHarness {
 public:
  // `disk` may be null.
  CoreHarness(const std::vector<int>& windows, EngineConfig config, int num_blocks,
              DiskTier* disk = nullptr)
      : CoreHarness(config, num_blocks, std::make_unique<FakeModel>(windows), disk) {}
  CoreHarness(EngineConfig config, int num_blocks, std::unique_ptr<Model> model,
              DiskTier* disk = nullptr)
      : layout_(model->kv_layout()),
        vocab_size_(model->limits().vocab_size),
        has_open_positions_(model->limits().has_open_positions),
        core_(std::move(model), filled(config), num_blocks, disk) {}

  RequestId add(EngineRequest request) { return add(std::move(request), 1); }
  // The first of n ids.
  RequestId add(const EngineRequest& request, int n) {
    const RequestId first = last_id_ + 1;
    for (int i = 0; i < n; ++i) {
      EngineRequest choice = request;
      choice.sampling.choice_idx += static_cast<std::uint32_t>(i);
      auto seq = make_sequence(std::move(choice), vocab_size_);
      seq->id = seq->arrival = ++last_id_;
      if (n > 1) seq->group = first;
      queues_[last_id_] = seq->output;
      core_.add(std::move(seq));
    }
    return first;
  }

  void step() {
    if (core_.has_work()) core_.step();
    check();
  }
  void abort(RequestId id) {
    core_.abort(id);
    check();
  }
  void expire(EngineClock::time_point now) {
    core_.expire(now);
    check();
  }
  void run_all() {
    for (int i = 0; core_.has_work(); ++i) {
      DUNLIN_CHECK(i < 100000, "the engine doesn't come to an end");
      step();
    }
  }

  const std::vector<TokenOutput>& outputs(RequestId id) { return outputs_[id]; }
  const TokenOutput& last(RequestId id) { return outputs_[id].back(); }
  bool is_finished(RequestId id) {
    return !outputs_[id].empty() && last(id).finish != FinishReason::kNone;
  }
  std::vector<TokenId> tokens(RequestId id) {
    std::vector<TokenId> result;
    for (const TokenOutput& output : outputs_[id]) {
      if (output.token) result.push_back(*output.token);
    }
    return result;
  }
  EngineCore& core() { return core_; }
  const KvLayout& layout() const { return layout_; }
  int vocab_size() const { return vocab_size_; }
  bool has_open_positions() const { return has_open_positions_; }

 private:
  static EngineConfig filled(EngineConfig config) {
    config.max_batch_tokens = std::max(config.max_batch_tokens, config.max_seqs);
    return config;
  }

  void check() {
    core_.check_integrity();
    check_waste();
    for (auto& [id, queue] : queues_) {
      while (auto output = queue->pop()) {
        DUNLIN_CHECK(!is_finished(id), "nothing follows the finish");
        outputs_[id].push_back(std::move(*output));
      }
    }
  }

  // Less than a block at the end of a sequence, and at the beginning of a window or behind sinks.
  void check_waste() {
    const EngineStats& stats = core_.stats();
    const std::int64_t most = std::int64_t{stats.num_running} * (kBlockSize - 1);
    const auto groups = static_cast<std::int64_t>(layout_.groups.size());
    const auto windows = std::count_if(layout_.groups.begin(), layout_.groups.end(),
                                       [](const KvGroup& group) { return group.window > 0; });
    DUNLIN_CHECK(stats.kv_waste.num_empty <= most * groups, "slots are held ahead of their tokens");
    const auto lossy = stats.kv_policies[static_cast<std::size_t>(KvPolicyType::kWindow)];
    DUNLIN_CHECK(stats.kv_waste.num_expired <=
                     most * windows + lossy.num_running * (kBlockSize - 1) * (groups - windows),
                 "a window holds what it has passed");
  }

  KvLayout layout_;
  int vocab_size_;
  bool has_open_positions_;
  EngineCore core_;
  RequestId last_id_ = 0;
  std::map<RequestId, std::shared_ptr<OutputQueue>> queues_;
  std::map<RequestId, std::vector<TokenOutput>> outputs_;
};

}  // namespace dunlin::testing
