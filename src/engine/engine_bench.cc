// The engine's own time a step, with a model that computes nothing: scheduling, building the batch,
// sampling, handing tokens over. Logits are there once and stay, in cache as they would be.
//   engine_bench --benchmark_filter='step/.*'
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/row_maxima.h"
#include "engine/engine_core.h"
#include "support/engine_harness.h"

namespace dunlin {
namespace {

constexpr int kContext = 1024;

class IdleModel final : public Model {
 public:
  explicit IdleModel(int vocab_size)
      : layout_(KvLayout::make({0}, 1, 8, 8, KvFormat::kF16)), limits_{vocab_size, kContext} {}

  const ModelLimits& limits() const override { return limits_; }
  const KvLayout& kv_layout() const override { return layout_; }
  ModelCounters counters() const override { return {}; }
  void reserve(int, int, int) override {}
  void forward(const ForwardBatch& batch, KvStorage&, const ForwardOutputs& outputs) override {
    const auto [logits, maxima, hidden] = outputs;
    const auto rows = static_cast<std::size_t>(batch.num_outputs());
    const std::size_t wanted = rows * static_cast<std::size_t>(limits_.vocab_size);
    if (filled_ >= wanted) return;
    // A peaked head of a few hundred tokens in front of a normal one, as models give.
    for (; filled_ < wanted; ++filled_) {
      double sum = filled_ % 499 == 0 ? 12 : 0;
      for (int i = 0; i < 4; ++i) sum += 6 * uniform_at(1, static_cast<unsigned>(i), filled_) - 3;
      logits[filled_] = static_cast<float>(sum);
    }
    for (std::size_t row = 0; row < rows; ++row) {
      const auto vocab_size = static_cast<std::size_t>(limits_.vocab_size);
      row_maxima(logits.data() + row * vocab_size, vocab_size,
                 maxima.data() + row * maxima_size(vocab_size));
    }
  }

 private:
  KvLayout layout_;
  ModelLimits limits_;
  std::size_t filled_ = 0;
};

// Steps of `batch` sequences that decode; ended ones make room for new ones, out of the time.
void run_steps(benchmark::State& state, int batch, int vocab_size, const SamplingParams& sampling) {
  EngineConfig config;
  config.max_seqs = batch;
  config.max_context = kContext;
  testing::CoreHarness harness(config, batch * kContext / kKvBlockSize + 1,
                               std::make_unique<IdleModel>(vocab_size));
  EngineCore& core = harness.core();
  std::uint64_t seed = 0;
  for (auto _ : state) {
    if (!core.has_work()) {
      state.PauseTiming();
      for (int i = 0; i < batch; ++i) {
        EngineRequest request = testing::make_request(
            testing::random_prompt(static_cast<unsigned>(++seed), 16, vocab_size), kContext - 17);
        const int max_tokens = request.sampling.max_tokens;
        request.sampling = sampling;
        request.sampling.max_tokens = max_tokens;
        harness.add(std::move(request));
      }
      core.step();  // prefill
      state.ResumeTiming();
    }
    core.step();
  }
  state.SetItemsProcessed(state.iterations() * batch);
}

const bool kRegistered = [] {
  SamplingParams greedy, nucleus;
  greedy.temperature = 0;
  nucleus.temperature = 0.8f;
  nucleus.top_p = 0.95f;
  for (const auto& [name, params] : {std::pair{"greedy", greedy}, {"top_p", nucleus}}) {
    for (const int vocab_size : {1000, 49152, 151936}) {
      for (const int batch : {1, 8, 32}) {
        benchmark::RegisterBenchmark(
            ("step/" + std::string(name) + "/vocab:" + std::to_string(vocab_size) +
             "/batch:" + std::to_string(batch))
                .c_str(),
            run_steps, batch, vocab_size, params);
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace dunlin
