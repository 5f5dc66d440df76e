#include "kernels/gemm.h"

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "kernels/gemm_dispatch.h"
#include "kernels/gemm_reference.h"

namespace dunlin {
namespace {

static_assert(kNumPanelTypes == kNumDTypes);

// Chunks of about 50 us; fewer where a phase is short, so that every thread still has several.
constexpr double kChunkNs = 50e3;
constexpr double kMinChunkNs = 4e3;
constexpr double kChunksPerThread = 6;

// A rough cost of one panel on one core: its bytes or its products, whichever takes longer.
double panel_ns(const PackedMatrix& weights, std::int64_t num_tokens) {
  constexpr double kBytesPerNs = 8, kProductsPerNs = 70;
  const auto products = static_cast<double>(weights.cols() * kPanelRows * num_tokens);
  return std::max(static_cast<double>(weights.panel_bytes()) / kBytesPerNs,
                  products / kProductsPerNs);
}

// The panels that one chunk of a task takes.
std::int64_t panels_per_chunk(const GemmTask& task, std::int64_t num_tokens, double chunk_ns) {
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(chunk_ns / panel_ns(*task.weights, num_tokens)));
}

struct Phase {
  Isa isa;
  std::span<const GemmTask> tasks;
  const Activations& x;
  std::int64_t num_tokens;
  const std::int32_t* token_rows;
  double chunk_ns = 0;

  std::int64_t chunks_of(const GemmTask& task) const {
    const std::int64_t per_chunk = panels_per_chunk(task, num_tokens, chunk_ns);
    return (task.weights->num_panels() + per_chunk - 1) / per_chunk;
  }

  // Returns the bytes of weights read.
  std::int64_t run_chunk(std::int64_t chunk) const {
    const GemmTask* task = tasks.data();
    for (std::int64_t count = chunks_of(*task); chunk >= count; count = chunks_of(*task)) {
      chunk -= count;
      ++task;
    }
    const std::int64_t per_chunk = panels_per_chunk(*task, num_tokens, chunk_ns);
    const std::int64_t first = chunk * per_chunk;
    const std::int64_t last = std::min(first + per_chunk, task->weights->num_panels());
    run_panels(*task, first, last);
    return (last - first) * task->weights->panel_bytes();
  }

  void run_panels(const GemmTask& task, std::int64_t first, std::int64_t last) const {
    const PackedMatrix& w = *task.weights;
    const std::int64_t first_row = first * kPanelRows;
    const std::int64_t last_row = std::min(last * kPanelRows, w.rows());
    if (isa == Isa::kReference) {
      reference_rows(task, x, num_tokens, token_rows, first_row, last_row);
      return;
    }
    gemm_kernels(isa).panels[static_cast<std::size_t>(w.dtype())](PanelJob{
        .panels = w.panel(first),
        .panel_bytes = w.panel_bytes(),
        .num_panels = last - first,
        .cols = w.cols(),
        .num_rows = last_row - first_row,
        .x = x.rows(),
        .token_rows = token_rows,
        .num_tokens = num_tokens,
        .bias = task.bias != nullptr ? task.bias + first_row : nullptr,
        .y = task.y + first_row,
        .y_stride = task.y_stride,
    });
  }
};

}  // namespace

const GemmKernels& gemm_kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) return kAvx2Gemm;
  if (isa == Isa::kAvx512) return kAvx512Gemm;
#endif
  DUNLIN_DCHECK(isa == Isa::kReferenceQ8 || isa == Isa::kPortable, "no panel kernels");
  return kReferenceQ8Gemm;
}

std::int64_t gemm(ThreadPool& pool, Isa isa, std::span<const GemmTask> tasks, const Activations& x,
                  std::int64_t num_tokens, const std::int32_t* token_rows) {
  if (num_tokens == 0) return 0;
  Phase phase{isa, tasks, x, num_tokens, token_rows};
  double total_ns = 0;
  for (const GemmTask& task : tasks) {
    DUNLIN_CHECK(task.weights->cols() == x.cols(), "weights and activations differ in columns");
    total_ns +=
        panel_ns(*task.weights, num_tokens) * static_cast<double>(task.weights->num_panels());
  }
  phase.chunk_ns =
      std::clamp(total_ns / (pool.num_threads() * kChunksPerThread), kMinChunkNs, kChunkNs);
  std::int64_t num_chunks = 0;
  for (const GemmTask& task : tasks) num_chunks += phase.chunks_of(task);
  std::atomic<std::int64_t> bytes{0};
  pool.parallel_for(static_cast<int>(num_chunks), [&](int chunk, int) {
    bytes.fetch_add(phase.run_chunk(chunk), std::memory_order_relaxed);
  });
  return bytes.load(std::memory_order_relaxed);
}

}  // namespace dunlin
