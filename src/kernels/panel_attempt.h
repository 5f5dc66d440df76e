// A panel job as a chunk that its worker may let go. Internal to kernels/.
#pragma once

#include "cpu/thread_pool.h"
#include "kernels/gemm_panels.h"

namespace dunlin {

// Runs `kernel` over `job`. While few tokens and rows are concerned it works on copies and lets the
// chunk go meanwhile: the weights and the bias must outlive a pool that redoes chunks. Whether
// job.y is written; if not, another does the chunk and nothing of the phase may be touched any
// more.
bool run_attempt(ThreadPool::Attempt& attempt, void (*kernel)(const PanelJob&),
                 const PanelJob& job);

}  // namespace dunlin
