// Attention in Qwen2.5-0.5B's shape (14 heads, 2 KV heads, 64 dimensions, 24 layers, f16). Each
// iteration is a whole step's attention, over all layers, so that K and V come from memory and not
// from a cache. GB/s: stored bytes read; GFLOPS: multiply-adds of the positions that are seen.
#include <benchmark/benchmark.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/attention.h"

namespace dunlin {
namespace {

constexpr int kHeads = 14, kKvHeads = 2, kDim = 64, kLayers = 24;

class Step {
 public:
  Step(int num_seqs, int context, int queries, int threads) : pool_(threads) {
    constexpr std::int64_t kLayerBytes = std::int64_t{2} * kKvHeads * kDim * kKvBlockSize * 2;
    const int blocks = (context + kKvBlockSize - 1) / kKvBlockSize;
    arena_ = Buffer(static_cast<std::size_t>(num_seqs * blocks * kLayers * kLayerBytes));
    auto* halves = arena_.as<std::uint16_t>();
    for (std::size_t i = 0; i < arena_.size() / 2; ++i)  // +-0.5 to 2
      halves[i] = static_cast<std::uint16_t>(0x3800 + (i * 2654435761u >> 20) % 0x800 +
                                             ((i * 40503u >> 7) & 1) * 0x8000);
    layer_ = {.base = arena_.data(),
              .block_stride = kLayers * kLayerBytes,
              .k_offset = 0,
              .v_offset = kLayerBytes / 2,
              .num_kv_heads = kKvHeads,
              .head_dim_k = kDim,
              .head_dim_v = kDim};
    layer_bytes_ = kLayerBytes;
    tables_.resize(static_cast<std::size_t>(num_seqs * blocks));
    // Neighbours in a sequence are not neighbours in the arena.
    for (std::size_t i = 0; i < tables_.size(); ++i)
      tables_[i] = static_cast<std::int32_t>(i * 7919 % tables_.size());
    starts_.push_back(0);
    for (int s = 0; s < num_seqs; ++s) {
      for (int i = 0; i < queries; ++i) positions_.push_back(context - queries + i);
      starts_.push_back(static_cast<std::int32_t>(positions_.size()));
      lens_.push_back(context);
    }
    q_.resize(positions_.size() * kHeads * kDim);
    for (std::size_t i = 0; i < q_.size(); ++i) q_[i] = std::sin(static_cast<float>(i));
    out_.resize(q_.size());
    batch_ = {.q = q_.data(),
              .q_stride = kHeads * kDim,
              .positions = positions_,
              .query_start_loc = starts_,
              .seq_lens = lens_,
              .block_tables = tables_,
              .max_blocks_per_seq = blocks};
    params_.num_heads = kHeads;
    params_.scale = 0.125f;
    scratch_.reserve(threads, static_cast<std::int64_t>(positions_.size()), num_seqs, kHeads,
                     kKvHeads, kDim, kDim);
  }

  void run() {
    for (int l = 0; l < kLayers; ++l) {
      PagedKvLayer layer = layer_;
      layer.base += l * layer_bytes_;
      attention(pool_, best_isa(), params_, batch_, layer, out_.data(), scratch_);
    }
  }
  double bytes() const { return static_cast<double>(arena_.size()); }
  double flops() const {
    double seen = 0;
    for (std::int32_t p : positions_) seen += p + 1;
    return seen * kHeads * kDim * 2 * 2 * kLayers;
  }

 private:
  ThreadPool pool_;
  Buffer arena_;
  PagedKvLayer layer_;
  std::int64_t layer_bytes_ = 0;
  std::vector<std::int32_t> tables_, positions_, starts_, lens_;
  std::vector<float> q_, out_;
  AttentionBatch batch_;
  AttentionParams params_;
  AttentionScratch scratch_;
};

// Arguments: sequences, context, queries a sequence, threads.
void BM_Attention(benchmark::State& state) {
  Step step(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
            static_cast<int>(state.range(2)), static_cast<int>(state.range(3)));
  step.run();
  for (auto _ : state) step.run();
  using benchmark::Counter;
  state.counters["GB/s"] = Counter(step.bytes() * 1e-9, Counter::kIsIterationInvariantRate);
  state.counters["GFLOPS"] = Counter(step.flops() * 1e-9, Counter::kIsIterationInvariantRate);
}
BENCHMARK(BM_Attention)
    ->ArgNames({"seqs", "context", "queries", "threads"})
    ->ArgsProduct({{1}, {512, 8192, 32768}, {1}, {1, 2}})
    ->ArgsProduct({{32}, {512}, {1}, {1, 2}})
    ->ArgsProduct({{1}, {512, 8192}, {512}, {1, 2}})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace dunlin
