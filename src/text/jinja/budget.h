// What one render may use. Everything that a template can make grow is charged here before it is
// made, so a hostile template ends in a Fault of kind kLimit and never in a dead server.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "text/jinja/fault.h"

namespace dunlin::jinja {

struct Limits {
  std::uint64_t steps = 20'000'000;       // nodes evaluated, items visited, bytes / 64
  std::size_t string_bytes = 32u << 20;   // of any one text, the output included
  std::size_t memory_bytes = 256u << 20;  // live at one time
  std::size_t range_items = 100'000;      // as in Jinja's sandbox
  int depth = 2'000;                      // nested statements, expressions and macro calls
  int value_depth = 200;                  // nesting that printing and comparing follow
  std::chrono::milliseconds time{5'000};
};

// Owned by one render; single-threaded.
class Budget {
 public:
  explicit Budget(const Limits& limits)
      : limits_(limits), deadline_(std::chrono::steady_clock::now() + limits.time) {}

  const Limits& limits() const { return limits_; }

  void step(std::uint64_t count = 1) {
    steps_ += count;
    if (steps_ >= next_check_) check();
  }
  // Work proportional to `bytes` of text.
  void scan(std::size_t bytes) { step(1 + bytes / 64); }

  void grow(std::size_t bytes) {
    if (bytes > limits_.memory_bytes || live_ > limits_.memory_bytes - bytes) {
      limit_fault("the template needs more than its memory budget");
    }
    live_ += bytes;
  }
  void shrink(std::size_t bytes) { live_ -= bytes; }
  std::size_t live() const { return live_; }

  int value_depth = 0;  // how deep Nesting (nesting.h) is at the moment

 private:
  void check() {
    if (steps_ > limits_.steps) limit_fault("the template runs for more than its budget of steps");
    if (std::chrono::steady_clock::now() > deadline_) {
      limit_fault("the template runs for longer than its time budget");
    }
    next_check_ = steps_ + kCheckEvery;
  }

  static constexpr std::uint64_t kCheckEvery = 1'024;

  Limits limits_;
  std::chrono::steady_clock::time_point deadline_;
  std::uint64_t steps_ = 0;
  std::uint64_t next_check_ = kCheckEvery;
  std::size_t live_ = 0;
};

}  // namespace dunlin::jinja
