#include "kernels/gemm.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/check.h"
#include "base/row_maxima.h"
#include "cpu/cache_size.h"
#include "kernels/gemm_dispatch.h"
#include "kernels/gemm_reference.h"
#include "kernels/panel_attempt.h"

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

// How many tokens run over a panel before the next panel's turn: half a core's second-level cache
// holds their rows, so that those of a long prompt come from it for each panel. No fewer than
// kMinGroup, for which a panel is unpacked again.
std::int64_t group_tokens(const PackedMatrix& weights, std::int64_t num_tokens) {
  constexpr std::int64_t kMinGroup = 64, kMultiple = 16;
  const bool is_float = dtype_info(weights.dtype()).block_size == 1;
  const auto col_bytes = is_float ? sizeof(float) : sizeof(ActivationBlock) / kBlockCols;
  const std::int64_t row_bytes = weights.cols() * static_cast<std::int64_t>(col_bytes);
  const std::int64_t fit = std::max(kMinGroup, l2_cache_bytes() / 2 / row_bytes);
  const std::int64_t num_groups = (num_tokens + fit - 1) / fit;
  const std::int64_t even = (num_tokens + num_groups - 1) / num_groups;
  return (even + kMultiple - 1) / kMultiple * kMultiple;
}

// A rough cost of one panel on one core: its bytes or its products, whichever takes longer.
double panel_ns(const PackedMatrix& weights, std::int64_t num_tokens) {
  constexpr double kBytesPerNs = 8, kProductsPerNs = 70;
  const auto products = static_cast<double>(weights.cols() * kPanelRows * num_tokens);
  return std::max(static_cast<double>(weights.panel_bytes()) / kBytesPerNs,
                  products / kProductsPerNs);
}

// The rows of x that a task takes.
struct TokenRows {
  std::int64_t count;
  const std::int32_t* rows;  // or null: 0, 1, ...
};

// The tasks of a call cut into chunks, numbered through: panels of a group of tokens, one group
// after the other, so that each worker keeps to few groups.
class Phase {
 public:
  // shared: the rows of all tasks, or null: each has its own.
  Phase(std::span<const GemmTask> tasks, const TokenRows* shared, int num_threads)
      : tasks_(tasks), shared_(shared), stride_((tasks.size() + kStops - 1) / kStops) {
    double total_ns = 0;
    for (const GemmTask& task : tasks) total_ns += task_ns(task);
    chunk_ns_ = std::clamp(total_ns / (num_threads * kChunksPerThread), kMinChunkNs, kChunkNs);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (i % stride_ == 0) stops_[i / stride_] = num_chunks_;
      num_chunks_ += chunks_of(tasks[i]);
    }
  }

  std::int64_t num_chunks() const { return num_chunks_; }

  struct Chunk {
    const GemmTask* task;
    std::int64_t first, last;  // panels
    std::int64_t first_token, num_tokens;
    // Of the weights, counted with the first group.
    std::int64_t size_bytes() const {
      return first_token == 0 ? (last - first) * task->weights->panel_bytes() : 0;
    }
  };
  Chunk chunk(std::int64_t idx) const {
    const auto num_stops = static_cast<std::ptrdiff_t>((tasks_.size() + stride_ - 1) / stride_);
    const auto after = std::upper_bound(stops_.begin(), stops_.begin() + num_stops, idx);
    idx -= *(after - 1);
    const GemmTask* task = &tasks_[static_cast<std::size_t>(after - 1 - stops_.begin()) * stride_];
    for (std::int64_t count = chunks_of(*task); idx >= count; count = chunks_of(*task)) {
      idx -= count;
      ++task;
    }
    const std::int64_t num_tokens = rows_of(*task).count;
    const std::int64_t group = group_tokens(*task->weights, num_tokens);
    const std::int64_t in_group = chunks_of_group(*task, group);
    const std::int64_t per_chunk = panels_per_chunk(*task, group);
    const std::int64_t first_token = idx / in_group * group, first = idx % in_group * per_chunk;
    return {task, first, std::min(first + per_chunk, task->weights->num_panels()), first_token,
            std::min(group, num_tokens - first_token)};
  }

  // Whether the chunk's results are written: if not, nothing here may be touched any more.
  bool run_panels(Isa isa, const Chunk& chunk, const Activations& x,
                  ThreadPool::Attempt& attempt) const {
    const GemmTask& task = *chunk.task;
    const PackedMatrix& w = *task.weights;
    const std::int64_t first_row = chunk.first * kPanelRows;
    const std::int64_t last_row = std::min(chunk.last * kPanelRows, w.rows());
    if (isa == Isa::kReference) {
      const TokenRange tokens{chunk.first_token, chunk.num_tokens, rows_of(task).rows};
      reference_rows(task, x, tokens, first_row, last_row);
      find_maxima(chunk);
      return true;
    }
    PanelJob job{
        .panels = w.panel(chunk.first),
        .panel_bytes = w.panel_bytes(),
        .num_panels = chunk.last - chunk.first,
        .cols = w.cols(),
        .num_rows = last_row - first_row,
        .x = x.rows(),
        .token_rows = rows_of(task).rows,
        .num_tokens = chunk.num_tokens,
        .bias = task.bias != nullptr ? task.bias + first_row : nullptr,
        .y = task.y + chunk.first_token * task.y_stride + first_row,
        .y_stride = task.y_stride,
    };
    skip_tokens(chunk.first_token, job);
    const auto kernel = gemm_kernels(isa).panels[static_cast<std::size_t>(w.dtype())];
    if (!run_attempt(attempt, kernel, job)) return false;
    find_maxima(chunk);
    return true;
  }

 private:
  // A search among so many tasks ends with a walk over the few between two.
  static constexpr std::size_t kStops = 32;

  // The job's tokens begin with that of index `count`.
  static void skip_tokens(std::int64_t count, PanelJob& job) {
    if (job.token_rows != nullptr) {
      job.token_rows += count;
      return;
    }
    job.x.blocks += count * job.x.stride;
    if (job.x.values != nullptr) job.x.values += count * job.x.stride * kBlockCols;
  }

  TokenRows rows_of(const GemmTask& task) const {
    return shared_ != nullptr ? *shared_ : TokenRows{task.num_tokens, task.token_rows};
  }

  double task_ns(const GemmTask& task) const {
    const std::int64_t num_tokens = rows_of(task).count;
    if (num_tokens == 0) return 0;
    return panel_ns(*task.weights, num_tokens) * static_cast<double>(task.weights->num_panels());
  }

  std::int64_t panels_per_chunk(const GemmTask& task, std::int64_t group) const {
    const double fit = chunk_ns_ / panel_ns(*task.weights, std::min(group, rows_of(task).count));
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(fit));
  }

  std::int64_t chunks_of_group(const GemmTask& task, std::int64_t group) const {
    const std::int64_t per_chunk = panels_per_chunk(task, group);
    return (task.weights->num_panels() + per_chunk - 1) / per_chunk;
  }

  std::int64_t chunks_of(const GemmTask& task) const {
    const std::int64_t num_tokens = rows_of(task).count;
    if (num_tokens == 0) return 0;
    const std::int64_t group = group_tokens(*task.weights, num_tokens);
    return (num_tokens + group - 1) / group * chunks_of_group(task, group);
  }

  // While the chunk's results are near.
  void find_maxima(const Chunk& chunk) const {
    const GemmTask& task = *chunk.task;
    if (task.maxima == nullptr) return;
    const std::int64_t end_token = chunk.first_token + chunk.num_tokens;
    for (std::int64_t t = chunk.first_token; t < end_token; ++t) {
      const float* y = task.y + t * task.y_stride;
      float* maxima = task.maxima + t * task.weights->num_panels();
      const std::int64_t first = chunk.first * kPanelRows;
      const std::int64_t end = std::min(chunk.last * kPanelRows, task.weights->rows());
      row_maxima(y + first, static_cast<std::size_t>(end - first), maxima + chunk.first);
    }
  }

  std::span<const GemmTask> tasks_;
  const TokenRows* shared_;
  double chunk_ns_ = kChunkNs;
  std::int64_t num_chunks_ = 0;
  std::size_t stride_;                        // tasks from stop to stop
  std::array<std::int64_t, kStops> stops_{};  // the first chunk of every stride-th task
};

std::int64_t run(ThreadPool& pool, Isa isa, std::span<const GemmTask> tasks, const Activations& x,
                 const TokenRows* shared) {
  for (const GemmTask& task : tasks) {
    DUNLIN_CHECK(task.weights->cols() == x.cols(), "weights and activations differ in columns");
  }
  const Phase phase(tasks, shared, pool.num_threads());
  std::atomic<std::int64_t> bytes{0};
  const auto run_chunk = [&](ThreadPool::Attempt& attempt) {
    const Phase::Chunk chunk = phase.chunk(attempt.chunk_idx());
    if (!phase.run_panels(isa, chunk, x, attempt)) return;
    bytes.fetch_add(chunk.size_bytes(), std::memory_order_relaxed);
  };
  pool.parallel_for_attempts(static_cast<int>(phase.num_chunks()), run_chunk);
  return bytes.load(std::memory_order_relaxed);
}

}  // namespace

const GemmKernels& gemm_kernels(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) return kAvx2Gemm;
  if (isa == Isa::kAvx512) return kAvx512Gemm;
  if (isa == Isa::kAmx) return kAmxGemm;
#elif defined(__aarch64__)
  if (isa == Isa::kNeon) return kNeonGemm;
#endif
  DUNLIN_DCHECK(isa == Isa::kReferenceQ8 || isa == Isa::kPortable, "no panel kernels");
  return kReferenceQ8Gemm;
}

std::int64_t gemm(ThreadPool& pool, Isa isa, std::span<const GemmTask> tasks, const Activations& x,
                  std::int64_t num_tokens, const std::int32_t* token_rows) {
  const TokenRows rows{num_tokens, token_rows};
  return run(pool, isa, tasks, x, &rows);
}

std::int64_t gemm_grouped(ThreadPool& pool, Isa isa, std::span<const GemmTask> tasks,
                          const Activations& x) {
  return run(pool, isa, tasks, x, nullptr);
}

void warm_gemm(ThreadPool& pool, std::span<const GemmTask> tasks, std::int64_t num_tokens) {
  const TokenRows rows{num_tokens, nullptr};
  const Phase phase(tasks, &rows, pool.num_threads());
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
