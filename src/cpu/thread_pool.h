// The compute pool. One thread (the engine's) owns it, calls it and is its worker 0.
//
// Each worker has its own run of neighbouring chunks, the same one in every phase of as many
// chunks, and takes chunks from the ends of the others' runs when its own is done. A phase ends
// when all of its chunks are done, not when all workers have arrived: a worker that the system has
// put to sleep delays only the chunk it holds. Workers wait by spinning for a short bounded time,
// then yielding, then parking, so an idle pool uses no CPU and a busy neighbour does not collapse
// throughput.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/function_ref.h"

namespace dunlin {

class ThreadPool {
 public:
  // num_threads counts the calling thread: 1 starts no thread. 0: default_num_threads().
  explicit ThreadPool(int num_threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const;

  // Calls fn(chunk_idx, worker_idx) once for each chunk in [0, num_chunks), on any worker in any
  // order, and returns when all are done. Everything written by the chunks is visible to the
  // caller then. fn must not throw and must not call the pool. Aim for chunks of about 50 us.
  void parallel_for(int num_chunks, FunctionRef<void(int chunk_idx, int worker_idx)> fn);

  // The chunk that a worker's own run begins with in a phase of num_chunks.
  int first_chunk(int worker_idx, int num_chunks) const;

  // What a worker will read first in a phase to come: it pulls these bytes into its second-level
  // cache while it waits. A hint: the bytes are never dereferenced, so they may be freed at any
  // time.
  void warm(int worker_idx, std::span<const std::byte> bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Cores this process may use: the affinity mask, cut by the cgroup's CPU quota (rounded up).
int default_num_threads();

}  // namespace dunlin
