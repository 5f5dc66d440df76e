// Microseconds a row at the vocabulary sizes of Qwen (151,936) and Gemma (262,144).
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include "sampling/sampler.h"

namespace dunlin {
namespace {

// -1: logprobs off, 0 or 1: the parameter off.
void run(benchmark::State& state, float temperature, int top_k, float top_p, float min_p,
         int num_logprobs) {
  SamplingParams params;
  params.temperature = temperature;
  params.top_k = top_k;
  params.top_p = top_p;
  params.min_p = min_p;
  params.num_logprobs = num_logprobs;
  const auto vocab_size = static_cast<int>(state.range(0));
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> row(static_cast<std::size_t>(vocab_size));
  for (float& x : row) x = normal(random);
  for (std::size_t i = 0; i < 50; ++i) row[i * 997] += 12;  // a peaked head, as models have
  std::vector<float> maxima(maxima_size(row.size()));
  row_maxima(row, maxima);
  Sampler sampler(vocab_size);
  SampleInput input;
  input.params = &params;
  TokenLogprobs logprobs;
  for (auto _ : state) {
    ++input.position;
    benchmark::DoNotOptimize(sampler.sample(row, maxima, input, &logprobs));
  }
}

void greedy(benchmark::State& state) { run(state, 0, 0, 1, 0, -1); }
void softmax(benchmark::State& state) { run(state, 1, 0, 1, 0, -1); }
void top_p(benchmark::State& state) { run(state, 0.7f, 0, 0.95f, 0, -1); }
void top_k_top_p(benchmark::State& state) { run(state, 1, 40, 0.95f, 0, -1); }
void min_p(benchmark::State& state) { run(state, 1, 0, 1, 0.05f, -1); }
void greedy_logprobs(benchmark::State& state) { run(state, 0, 0, 1, 0, 20); }

BENCHMARK(greedy)->Arg(151936)->Arg(262144);
BENCHMARK(softmax)->Arg(151936)->Arg(262144);
BENCHMARK(top_p)->Arg(151936)->Arg(262144);
BENCHMARK(top_k_top_p)->Arg(151936)->Arg(262144);
BENCHMARK(min_p)->Arg(151936)->Arg(262144);
BENCHMARK(greedy_logprobs)->Arg(151936)->Arg(262144);

}  // namespace
}  // namespace dunlin
