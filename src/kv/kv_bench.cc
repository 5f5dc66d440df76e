// What the prefix cache costs: finding a cached prompt, looking for one in vain, and indexing a new
// one. Per token of the prompt; linear in its length.
//   kv_bench
#include <benchmark/benchmark.h>

#include <vector>

#include "kv/kv_cache_manager.h"

namespace dunlin {
namespace {

constexpr int kChunk = 512;

KvLayout layout_of(bool windows) {
  return KvLayout::make(
      windows ? std::vector<int>{0, 512, 512, 512, 512, 512} : std::vector<int>{0}, 1, 8, 8,
      KvFormat::kF16);
}

std::vector<TokenId> prompt_of(int length, TokenId first) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(length));
  for (int i = 0; i < length; ++i) tokens[static_cast<std::size_t>(i)] = (first + i * 7919) % 50000;
  return tokens;
}

void compute(KvCacheManager& kv, KvSequence& seq, const std::vector<TokenId>& tokens) {
  const int length = static_cast<int>(tokens.size());
  for (int n = seq.num_computed_tokens(); n < length;) {
    n = std::min(length, n + kChunk);
    benchmark::DoNotOptimize(kv.allocate(seq, n));
    kv.commit(seq, tokens, n);
  }
}

void match_hit(benchmark::State& state) {
  const int length = static_cast<int>(state.range(0));
  KvCacheManager kv(layout_of(state.range(1) != 0), 12 * length / kBlockSize, true);
  const auto tokens = prompt_of(length, 1);
  KvSequence seq = kv.make_sequence(length);
  compute(kv, seq, tokens);
  kv.free(seq);
  for (auto _ : state) {
    benchmark::DoNotOptimize(kv.match_prefix(seq, tokens));
    kv.free(seq);
  }
  state.SetItemsProcessed(state.iterations() * length);
}

void match_miss(benchmark::State& state) {
  const int length = static_cast<int>(state.range(0));
  KvCacheManager kv(layout_of(state.range(1) != 0), 12 * length / kBlockSize, true);
  KvSequence seq = kv.make_sequence(length);
  compute(kv, seq, prompt_of(length, 1));
  kv.free(seq);
  const auto other = prompt_of(length, 2);
  for (auto _ : state) benchmark::DoNotOptimize(kv.match_prefix(seq, other));
  state.SetItemsProcessed(state.iterations() * length);
}

// A prompt never seen before from start to end, in chunks; what was cached before is evicted.
void index_new_prompt(benchmark::State& state, bool prefix_cache) {
  const int length = static_cast<int>(state.range(0));
  KvCacheManager kv(layout_of(state.range(1) != 0), 12 * length / kBlockSize, prefix_cache);
  KvSequence seq = kv.make_sequence(length);
  auto tokens = prompt_of(length, 1);
  for (auto _ : state) {
    ++tokens[0];
    benchmark::DoNotOptimize(kv.match_prefix(seq, tokens));
    compute(kv, seq, tokens);
    kv.free(seq);
  }
  state.SetItemsProcessed(state.iterations() * length);
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgsProduct({{1024, 8192, 65536}, {0, 1}})->ArgNames({"tokens", "windows"});
}
BENCHMARK(match_hit)->Apply(sizes);
BENCHMARK(match_miss)->Apply(sizes);
BENCHMARK_CAPTURE(index_new_prompt, with_cache, true)->Apply(sizes);
BENCHMARK_CAPTURE(index_new_prompt, without, false)->Apply(sizes);

}  // namespace
}  // namespace dunlin
