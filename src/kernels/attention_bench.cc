// Attention in Qwen2.5-0.5B's shape (14 heads, 2 KV heads, 64 dimensions, 24 layers, f16) and in
// those of DeepSeek-V2-Lite and V3 (latents of 512 + 64 dimensions, 16 and 128 heads), and with a
// prefix that sequences share. Each
// iteration is a whole step's attention, over all layers, so that K and V come from memory and not
// from a cache. GB/s: stored bytes read; GFLOPS: multiply-adds of the positions that are seen.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/attention.h"

namespace dunlin {
namespace {

struct Shape {
  int heads, kv_heads, dim_k, dim_v, layers;
  bool values_in_keys;

  KvPart keys(KvFormats formats) const {
    return key_part(formats.k, kv_heads, dim_k, values_in_keys ? dim_v : 0);
  }
  KvPart values(KvFormats formats) const { return value_part(formats.v, kv_heads, dim_v); }
};
constexpr Shape kQwen = {14, 2, 64, 64, 24, false};
constexpr Shape kSmol = {9, 3, 64, 64, 30, false};
constexpr Shape latent_shape(int heads) { return {heads, 1, 576, 512, 4, true}; }

class Step {
 public:
  // The first `shared` tokens of all sequences lie in the same blocks.
  Step(const Shape& shape, int num_seqs, int context, int queries, int threads, int shared = 0,
       KvFormats formats = {})
      : shape_(shape), pool_(threads) {
    const KvPart keys = shape.keys(formats), values = shape.values(formats);
    layer_bytes_ = keys.block_bytes + (shape.values_in_keys ? 0 : values.block_bytes);
    const int blocks = (context + kKvBlockSize - 1) / kKvBlockSize;
    arena_ = Buffer(static_cast<std::size_t>(num_seqs * blocks * shape.layers * layer_bytes_));
    auto* halves = arena_.as<std::uint16_t>();
    // +-0.5 to 2 as halves, and small numbers in every other format
    for (std::size_t i = 0; i < arena_.size() / 2; ++i)
      halves[i] = static_cast<std::uint16_t>(0x3800 + (i * 2654435761u >> 20) % 0x800 +
                                             ((i * 40503u >> 7) & 1) * 0x8000);
    layer_ = {.base = arena_.data(),
              .block_stride = shape.layers * layer_bytes_,
              .k_offset = 0,
              .v_offset = keys.block_bytes,
              .num_kv_heads = shape.kv_heads,
              .head_dim_k = shape.dim_k,
              .head_dim_v = shape.dim_v,
              .k = keys,
              .v = values,
              .values_in_keys = shape.values_in_keys};
    tables_.resize(static_cast<std::size_t>(num_seqs * blocks));
    // Neighbours in a sequence are not neighbours in the arena.
    for (std::size_t i = 0; i < tables_.size(); ++i)
      tables_[i] = static_cast<std::int32_t>(i * 7919 % tables_.size());
    for (int s = 1; s < num_seqs; ++s)
      std::copy_n(tables_.begin(), shared / kKvBlockSize, tables_.begin() + s * blocks);
    starts_.push_back(0);
    for (int s = 0; s < num_seqs; ++s) {
      for (int i = 0; i < queries; ++i) positions_.push_back(context - queries + i);
      starts_.push_back(static_cast<std::int32_t>(positions_.size()));
      lens_.push_back(context);
    }
    const auto rows = static_cast<std::int64_t>(positions_.size()) * shape.heads;
    q_.resize(static_cast<std::size_t>(rows * shape.dim_k));
    for (std::size_t i = 0; i < q_.size(); ++i) q_[i] = std::sin(static_cast<float>(i));
    out_.resize(static_cast<std::size_t>(rows * shape.dim_v));
    batch_ = {.q = q_.data(),
              .q_stride = shape.heads * shape.dim_k,
              .positions = positions_,
              .query_start_loc = starts_,
              .seq_lens = lens_,
              .block_tables = tables_,
              .max_blocks_per_seq = blocks};
    params_.num_heads = shape.heads;
    params_.scale = 0.125f;
    scratch_.reserve(threads, static_cast<std::int64_t>(positions_.size()), num_seqs, shape.heads,
                     shape.kv_heads, shape.dim_k, shape.dim_v);
  }

  void run() {
    for (int l = 0; l < shape_.layers; ++l) {
      PagedKvLayer layer = layer_;
      layer.base += l * layer_bytes_;
      attention(pool_, best_isa(), params_, batch_, layer, out_.data(), scratch_);
    }
  }
  double bytes() const { return static_cast<double>(arena_.size()); }
  double flops() const {
    double seen = 0;
    for (std::int32_t p : positions_) seen += p + 1;
    return seen * shape_.heads * (shape_.dim_k + shape_.dim_v) * 2 * shape_.layers;
  }

 private:
  Shape shape_;
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

void measure(benchmark::State& state, Step& step) {
  step.run();
  for (auto _ : state) step.run();
  using benchmark::Counter;
  state.counters["GB/s"] = Counter(step.bytes() * 1e-9, Counter::kIsIterationInvariantRate);
  state.counters["GFLOPS"] = Counter(step.flops() * 1e-9, Counter::kIsIterationInvariantRate);
}

int argument(const benchmark::State& state, std::size_t i) {
  return static_cast<int>(state.range(i));
}

// Arguments: sequences, context, queries a sequence, threads.
void BM_Attention(benchmark::State& state) {
  Step step(kQwen, argument(state, 0), argument(state, 1), argument(state, 2), argument(state, 3));
  measure(state, step);
}
BENCHMARK(BM_Attention)
    ->ArgNames({"seqs", "context", "queries", "threads"})
    ->ArgsProduct({{1}, {512, 8192, 32768}, {1}, {1, 2}})
    ->ArgsProduct({{32}, {512}, {1}, {1, 2}})
    ->ArgsProduct({{1}, {512, 8192}, {512}, {1, 2}})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// Qwen's shape by format. Arguments: the format's number, context, queries, threads.
void BM_AttentionOfFormat(benchmark::State& state) {
  const auto format = static_cast<KvFormat>(argument(state, 0));
  state.SetLabel(std::string(kv_format_info(format).name));
  Step step(kQwen, 1, argument(state, 1), argument(state, 2), argument(state, 3), 0, format);
  measure(state, step);
}
BENCHMARK(BM_AttentionOfFormat)
    ->ArgNames({"format", "context", "queries", "threads"})
    ->ArgsProduct({benchmark::CreateDenseRange(0, kNumKvFormats - 1, 1), {32768}, {1}, {1, 2}})
    ->ArgsProduct({benchmark::CreateDenseRange(0, kNumKvFormats - 1, 1), {8192}, {512}, {2}})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// SmolLM2's shape and Qwen's, 32 sequences with 2,048 tokens. Arguments: KV heads (3: SmolLM2), of
// the tokens those that all share, threads.
void BM_SharedPrefix(benchmark::State& state) {
  Step step(argument(state, 0) == 3 ? kSmol : kQwen, 32, 2048, 1, argument(state, 2),
            argument(state, 1));
  measure(state, step);
}
BENCHMARK(BM_SharedPrefix)
    ->ArgNames({"kv_heads", "shared", "threads"})
    ->ArgsProduct({{3, 2}, {0, 1792}, {1, 2}})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// Arguments: heads, context, queries, threads.
void BM_LatentAttention(benchmark::State& state) {
  Step step(latent_shape(argument(state, 0)), 1, argument(state, 1), argument(state, 2),
            argument(state, 3));
  measure(state, step);
}
BENCHMARK(BM_LatentAttention)
    ->ArgNames({"heads", "context", "queries", "threads"})
    ->ArgsProduct({{16, 128}, {4096}, {1, 16}, {1, 2}})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace dunlin
