// The benchmarks of operations on rows: each case runs in every instruction set of the machine, on
// one thread, over rows that stay in its caches as they do in a step. Names are CASE/ISA.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cpu/isa.h"

namespace dunlin::testing {

struct RowBench {
  std::string name;
  std::int64_t num_rows;   // of a call
  std::int64_t row_bytes;  // read and written a row
  // The call to be timed, with its buffers. What it does to them in place must keep them finite.
  std::function<std::function<void()>(Isa)> make;
};

inline void run_row_bench(benchmark::State& state, const RowBench& bench, Isa isa) {
  const std::function<void()> call = bench.make(isa);
  for (auto _ : state) {
    call();
    benchmark::ClobberMemory();
  }
  using benchmark::Counter;
  const auto rows = static_cast<double>(bench.num_rows);
  state.counters["s/row"] = Counter(rows, Counter::kIsIterationInvariantRate | Counter::kInvert);
  state.counters["B/s"] = Counter(rows * static_cast<double>(bench.row_bytes),
                                  Counter::kIsIterationInvariantRate, Counter::kIs1000);
}

inline bool register_row_benches(const std::vector<RowBench>& benches) {
  for (const RowBench& bench : benches) {
    for (const Isa isa : supported_isas()) {
      const std::string name = bench.name + "/" + std::string(isa_name(isa));
      benchmark::RegisterBenchmark(name.c_str(), run_row_bench, bench, isa);
    }
  }
  return true;
}

}  // namespace dunlin::testing
