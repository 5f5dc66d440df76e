#include "kernels/gemm.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/gemm_reference.h"

namespace dunlin {

void gemm(ThreadPool& pool, Isa isa, std::span<const GemmTask> tasks, const Activations& x,
          std::int64_t num_tokens, const std::int32_t* token_rows) {
  DUNLIN_CHECK(isa == Isa::kReference, "only the reference multiplies so far");
  for (const GemmTask& task : tasks) {
    DUNLIN_CHECK(task.weights->cols() == x.cols(), "weights and activations differ in columns");
    const std::int64_t rows = task.weights->rows();
    pool.parallel_for(static_cast<int>(task.weights->num_panels()), [&](int panel, int) {
      const std::int64_t first = std::int64_t{panel} * kPanelRows;
      reference_rows(task, x, num_tokens, token_rows, first, std::min(first + kPanelRows, rows));
    });
  }
}

}  // namespace dunlin
