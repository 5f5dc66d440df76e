#include "kernels/gemm.h"

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "base/row_maxima.h"
#include "kernels/gemm_dispatch.h"
#include "kernels/gemm_reference.h"

namespace dunlin {
namespace {

static_assert(kNumPanelTypes == kNumDTypes);
static_assert(kMaximaBlock == kPanelRows);

// Chunks of about 50 us; fewer where a phase is short, so that every thread still has several.
constexpr double kChunkNs = 50e3;
constexpr double kMinChunkNs = 4e3;
constexpr double kChunksPerThread = 6;
// What a waiting worker pulls into its second-level cache: a part of it, and no more than is read
// in the time that a wait between two phases may take.
constexpr std::int64_t kWarmBytes = 128 << 10;

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

double chunk_ns(std::span<const GemmTask> tasks, std::int64_t num_tokens, int num_threads) {
  double total = 0;
  for (const GemmTask& task : tasks) {
    total += panel_ns(*task.weights, num_tokens) * static_cast<double>(task.weights->num_panels());
  }
  return std::clamp(total / (num_threads * kChunksPerThread), kMinChunkNs, kChunkNs);
}

struct Phase {
  std::span<const GemmTask> tasks;
  std::int64_t num_tokens;
  double chunk_ns;

  std::int64_t num_chunks() const {
    std::int64_t sum = 0;
    for (const GemmTask& task : tasks) sum += chunks_of(task);
    return sum;
  }

  std::int64_t chunks_of(const GemmTask& task) const {
    const std::int64_t per_chunk = panels_per_chunk(task, num_tokens, chunk_ns);
    return (task.weights->num_panels() + per_chunk - 1) / per_chunk;
  }

  struct Chunk {
    const GemmTask* task;
    std::int64_t first, last;  // panels
    std::int64_t size_bytes() const { return (last - first) * task->weights->panel_bytes(); }
  };
  Chunk chunk(std::int64_t idx) const {
    const GemmTask* task = tasks.data();
    for (std::int64_t count = chunks_of(*task); idx >= count; count = chunks_of(*task)) {
      idx -= count;
      ++task;
    }
    const std::int64_t per_chunk = panels_per_chunk(*task, num_tokens, chunk_ns);
    const std::int64_t first = idx * per_chunk;
    return {task, first, std::min(first + per_chunk, task->weights->num_panels())};
  }

  void run_panels(Isa isa, const Chunk& chunk, const Activations& x,
                  const std::int32_t* token_rows) const {
    const GemmTask& task = *chunk.task;
    const PackedMatrix& w = *task.weights;
    const std::int64_t first_row = chunk.first * kPanelRows;
    const std::int64_t last_row = std::min(chunk.last * kPanelRows, w.rows());
    if (isa == Isa::kReference) {
      reference_rows(task, x, num_tokens, token_rows, first_row, last_row);
      return find_maxima(chunk);
    }
    gemm_kernels(isa).panels[static_cast<std::size_t>(w.dtype())](PanelJob{
        .panels = w.panel(chunk.first),
        .panel_bytes = w.panel_bytes(),
        .num_panels = chunk.last - chunk.first,
        .cols = w.cols(),
        .num_rows = last_row - first_row,
        .x = x.rows(),
        .token_rows = token_rows,
        .num_tokens = num_tokens,
        .bias = task.bias != nullptr ? task.bias + first_row : nullptr,
        .y = task.y + first_row,
        .y_stride = task.y_stride,
    });
    find_maxima(chunk);
  }

  // While the chunk's results are near.
  void find_maxima(const Chunk& chunk) const {
    const GemmTask& task = *chunk.task;
    if (task.maxima == nullptr) return;
    for (std::int64_t t = 0; t < num_tokens; ++t) {
      const float* y = task.y + t * task.y_stride;
      float* maxima = task.maxima + t * task.weights->num_panels();
      const std::int64_t first = chunk.first * kPanelRows;
      const std::int64_t end = std::min(chunk.last * kPanelRows, task.weights->rows());
      row_maxima(y + first, static_cast<std::size_t>(end - first), maxima + chunk.first);
    }
  }
};

}  // namespace

const GemmKernels& gemm_kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) return kAvx2Gemm;
  if (isa == Isa::kAvx512) return kAvx512Gemm;
#elif defined(__aarch64__)
  if (isa == Isa::kNeon) return kNeonGemm;
#endif
  DUNLIN_DCHECK(isa == Isa::kReferenceQ8 || isa == Isa::kPortable, "no panel kernels");
  return kReferenceQ8Gemm;
}

std::int64_t gemm(ThreadPool& pool, Isa isa, std::span<const GemmTask> tasks, const Activations& x,
                  std::int64_t num_tokens, const std::int32_t* token_rows) {
  if (num_tokens == 0) return 0;
  for (const GemmTask& task : tasks) {
    DUNLIN_CHECK(task.weights->cols() == x.cols(), "weights and activations differ in columns");
  }
  const Phase phase{tasks, num_tokens, chunk_ns(tasks, num_tokens, pool.num_threads())};
  std::atomic<std::int64_t> bytes{0};
  pool.parallel_for(static_cast<int>(phase.num_chunks()), [&](int idx, int) {
    const Phase::Chunk chunk = phase.chunk(idx);
    phase.run_panels(isa, chunk, x, token_rows);
    bytes.fetch_add(chunk.size_bytes(), std::memory_order_relaxed);
  });
  return bytes.load(std::memory_order_relaxed);
}

void warm_gemm(ThreadPool& pool, std::span<const GemmTask> tasks, std::int64_t num_tokens) {
  const Phase phase{tasks, num_tokens, chunk_ns(tasks, num_tokens, pool.num_threads())};
  const auto num_chunks = static_cast<int>(phase.num_chunks());
  for (int worker = 1; worker < pool.num_threads(); ++worker) {
    const Phase::Chunk chunk = phase.chunk(pool.first_chunk(worker, num_chunks));
    const PackedMatrix& w = *chunk.task->weights;
    const std::byte* begin = w.panel(chunk.first);
    const std::int64_t size = std::min(kWarmBytes, w.panel(0) + w.size_bytes() - begin);
    pool.warm(worker, {begin, static_cast<std::size_t>(size)});
  }
}

}  // namespace dunlin
