// The compute pool. One thread (the engine's) owns it, calls it and is its worker 0.
//
// Each worker has its own run of neighbouring chunks, the same one in every phase of as many
// chunks, and takes chunks from the ends of the others' runs when its own is done. A phase ends
// when all of its chunks are done, not when all workers have arrived: a worker that the system has
// put to sleep delays only the chunk it holds; and where chunks allow it (Attempt), the caller does
// an overdue one again itself. Workers wait by spinning for a short bounded time, then yielding,
// then parking, so an idle pool uses no CPU; a worker that waits on the caller's core moves to
// another.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/function_ref.h"

namespace dunlin {

class ThreadPool {
 public:
  // One worker's attempt at a chunk. A long computation may be let go: from let_go() to take_back()
  // it reads only memory of its own or that outlives the pool, and writes only memory of its own.
  // When it is overdue the caller does the chunk again, from the beginning, and the phase ends
  // without this attempt.
  class Attempt {
   public:
    Attempt(int chunk_idx, int worker_idx) : chunk_idx_(chunk_idx), worker_idx_(worker_idx) {}
    Attempt(const Attempt&) = delete;
    Attempt& operator=(const Attempt&) = delete;

    int chunk_idx() const { return chunk_idx_; }
    int worker_idx() const { return worker_idx_; }
    // Whether letting go is of use: not on the caller, nor in a pool that redoes nothing.
    bool may_let_go() const { return let_go_ != nullptr; }
    void let_go();
    // Whether the result is still wanted, so that it must be published now. If not, the phase may
    // be over: return at once, without touching anything that belongs to it.
    bool take_back();

   private:
    friend class ThreadPool;
    int chunk_idx_, worker_idx_;
    bool is_lost_ = false;
    std::atomic<std::uint64_t>* let_go_ = nullptr;  // the worker's
    std::uint64_t tag_ = 0;                         // what stands there while it is let go
  };

  // Starts num_threads - 1 threads (0: default_num_threads()), or throws std::system_error.
  explicit ThreadPool(int num_threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const;

  // Calls fn(chunk_idx, worker_idx) once for each chunk in [0, num_chunks), on any worker in any
  // order, and returns when all are done. Everything written by the chunks is visible to the
  // caller then. fn must not throw and must not call the pool. Aim for chunks of about 50 us.
  void parallel_for(int num_chunks, FunctionRef<void(int chunk_idx, int worker_idx)> fn);

  // The same, with chunks that may be let go. fn is called once for each chunk and again for those
  // that are redone.
  void parallel_for_attempts(int num_chunks, FunctionRef<void(Attempt&)> fn);

  // From now on overdue chunks are redone. Whoever asks for it sees to it that what let-go chunks
  // read outlives the pool.
  void redo_overdue_chunks();

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
