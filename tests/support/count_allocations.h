// Counts operator new while a test says so. It replaces the program's operators, so exactly one
// source file of a test program includes it. A sanitizer brings operators of its own: nothing is
// counted then.
#pragma once

#include <atomic>
#include <cstdlib>
#include <new>

#include "support/sanitized.h"

namespace dunlin::testing {

inline std::atomic<int> num_allocations{0};
inline std::atomic<bool> counts_every_thread{false};
inline thread_local bool counts_this_thread = false;

inline void* counted_new(std::size_t size) {
  if (counts_this_thread || counts_every_thread) ++num_allocations;
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace dunlin::testing

#ifndef DUNLIN_SANITIZED
void* operator new(std::size_t size) { return dunlin::testing::counted_new(size); }
void* operator new[](std::size_t size) { return dunlin::testing::counted_new(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
#endif
