#include "kernels/panel_attempt.h"

#include <algorithm>

namespace dunlin {
namespace {

// Copies of at most so much take a microsecond or so, of a chunk's 50.
constexpr std::int64_t kMaxBlocks = 512;
constexpr std::int64_t kMaxResults = 4096;

// Weights of plain floats read rows of floats, which are four times as many bytes.
bool is_small(const PanelJob& job) {
  return job.token_rows == nullptr && job.x.values == nullptr &&
         job.num_tokens * job.x.stride <= kMaxBlocks &&
         job.num_tokens * job.num_rows <= kMaxResults;
}

}  // namespace

bool run_attempt(ThreadPool::Attempt& attempt, void (*kernel)(const PanelJob&),
                 const PanelJob& job) {
  if (!attempt.may_let_go() || !is_small(job)) {
    kernel(job);
    return true;
  }
  ActivationBlock blocks[kMaxBlocks];
  float results[kMaxResults];
  std::copy_n(job.x.blocks, job.num_tokens * job.x.stride, blocks);
  PanelJob apart = job;
  apart.x.blocks = blocks;
  apart.y = results;
  apart.y_stride = job.num_rows;
  attempt.let_go();
  kernel(apart);
  if (!attempt.take_back()) return false;
  for (std::int64_t t = 0; t < job.num_tokens; ++t) {
    std::copy_n(results + t * job.num_rows, job.num_rows, job.y + t * job.y_stride);
  }
  return true;
}

}  // namespace dunlin
