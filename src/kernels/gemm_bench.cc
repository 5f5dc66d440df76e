// Speed of the panel kernels by format and shape, one thread: GB/s of weights and GOP/s of int8
// products (2 a multiply-add), at the fast end of many short calls, since the machine may be busy.
//   DUNLIN_ISA=avx2 kernels_bench --benchmark_filter='gemm/Q5_0.*' --benchmark_repetitions=5
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/gemm.h"
#include "kernels/gemm_dispatch.h"
#include "kernels/gemm_test_support.h"

namespace dunlin {
namespace {

// DUNLIN_ISA, or the best.
Isa bench_isa() {
  const char* name = std::getenv("DUNLIN_ISA");
  return parse_isa(name != nullptr ? name : "auto").value();
}

struct Shape {
  DType dtype;
  std::int64_t rows, cols;
};

// The three test models' matrices; a format that none of them has stands at a Qwen shape.
constexpr Shape kShapes[] = {
    {DType::kQ4_1, 576, 576},    {DType::kQ4_1, 1536, 576},  {DType::kQ4_1, 576, 1536},
    {DType::kQ8_0, 49152, 576},  {DType::kQ5_0, 896, 896},   {DType::kQ5_0, 4864, 896},
    {DType::kQ8_0, 896, 896},    {DType::kQ6_K, 896, 4864},  {DType::kQ4_K, 896, 4864},
    {DType::kQ8_0, 151936, 896}, {DType::kQ5_0, 2048, 640},  {DType::kQ6_K, 640, 2048},
    {DType::kQ8_0, 262144, 640}, {DType::kQ4_0, 4864, 896},  {DType::kQ4_1, 4864, 896},
    {DType::kQ5_1, 4864, 896},   {DType::kQ8_0, 4864, 896},  {DType::kIQ4_NL, 4864, 896},
    {DType::kQ2_K, 4864, 1024},  {DType::kQ3_K, 4864, 1024}, {DType::kQ4_K, 4864, 1024},
    {DType::kQ5_K, 4864, 1024},  {DType::kQ6_K, 4864, 1024}, {DType::kIQ4_XS, 4864, 1024},
    {DType::kF32, 1024, 896},    {DType::kF16, 4864, 896},   {DType::kBF16, 4864, 896},
    {DType::kQ8_0, 896, 4864},   {DType::kF16, 896, 4864},   {DType::kQ4_K, 4096, 4096},
};

// A window of panels a call, short enough (under a millisecond) that most calls run undisturbed,
// moving over the whole matrix so that a large one comes from memory.
std::int64_t window_panels(const PackedMatrix& packed, std::int64_t tokens) {
  const std::int64_t products = packed.cols() * kPanelRows * tokens;
  return std::clamp<std::int64_t>(20'000'000 / products, 1, packed.num_panels());
}

void run_gemm(benchmark::State& state, Shape shape, std::int64_t tokens) {
  ThreadPool pool(1);
  const auto stored = testing::random_matrix(shape.dtype, shape.rows, shape.cols, 1);
  const PackedMatrix packed =
      PackedMatrix::pack(stored.view(), RowOrder{}, bench_isa(), pool).value();
  Activations x;
  x.reserve(tokens, shape.cols, true);
  x.reset(shape.cols);
  const std::vector<float> values = testing::random_floats(tokens * shape.cols, 2);
  for (std::int64_t t = 0; t < tokens; ++t) {
    x.set_row(bench_isa(), t, values.data() + t * shape.cols);
  }
  std::vector<float> y(static_cast<std::size_t>(tokens * shape.rows));
  const auto kernel = gemm_kernels(bench_isa()).panels[static_cast<std::size_t>(shape.dtype)];
  const std::int64_t window = window_panels(packed, tokens);
  std::vector<double> times_s;
  std::int64_t panel = 0;
  for (auto _ : state) {
    if (panel + window > shape.rows / kPanelRows) panel = 0;
    const PanelJob job{.panels = packed.panel(panel),
                       .panel_bytes = packed.panel_bytes(),
                       .num_panels = window,
                       .cols = shape.cols,
                       .num_rows = window * kPanelRows,
                       .x = x.rows(),
                       .token_rows = nullptr,
                       .num_tokens = tokens,
                       .bias = nullptr,
                       .y = y.data() + panel * kPanelRows,
                       .y_stride = shape.rows};
    const auto start = std::chrono::steady_clock::now();
    kernel(job);
    benchmark::ClobberMemory();
    times_s.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    panel += window;
  }
  // The fastest tenth's end: undisturbed, yet no lucky single call.
  const auto tenth = times_s.begin() + static_cast<std::ptrdiff_t>(times_s.size() / 10);
  std::nth_element(times_s.begin(), tenth, times_s.end());
  const double products = static_cast<double>(window * kPanelRows * shape.cols * tokens);
  state.counters["GB/s"] = static_cast<double>(window * packed.panel_bytes()) / *tenth / 1e9;
  state.counters["GOP/s"] = 2 * products / *tenth / 1e9;
}

void run_pack(benchmark::State& state, Shape shape) {
  ThreadPool pool(1);
  const auto stored = testing::random_matrix(shape.dtype, shape.rows, shape.cols, 1);
  for (auto _ : state) {
    const auto packed = PackedMatrix::pack(stored.view(), RowOrder{}, bench_isa(), pool).value();
    benchmark::DoNotOptimize(packed.panel(0));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(stored.bytes.size()));
}

const bool kRegistered = [] {
  for (const Shape& shape : kShapes) {
    const std::string name = std::string(dtype_info(shape.dtype).name) + "/" +
                             std::to_string(shape.rows) + "x" + std::to_string(shape.cols);
    const bool head = shape.rows * shape.cols > 20'000'000;
    for (const std::int64_t tokens : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 32, 64, 512}) {
      if (head && tokens > 16) continue;
      benchmark::RegisterBenchmark(("gemm/" + name + "/" + std::to_string(tokens)).c_str(),
                                   run_gemm, shape, tokens);
    }
    if (!head) benchmark::RegisterBenchmark(("pack/" + name).c_str(), run_pack, shape);
  }
  return true;
}();

}  // namespace
}  // namespace dunlin
