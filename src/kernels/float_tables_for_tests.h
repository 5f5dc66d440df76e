// The fast float tables that this machine can run, AVX-512 over SIMDe where it lacks the real one.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "cpu/isa.h"
#include "kernels/float_kernels.h"

namespace dunlin {

struct NamedTable {
  std::string name;
  const FloatKernels* table;
};
inline std::ostream& operator<<(std::ostream& out, const NamedTable& t) { return out << t.name; }

inline std::vector<NamedTable> fast_tables() {
  std::vector<NamedTable> tables = {{"portable", &portable_float_kernels()},
                                    {"reference_q8", &reference_q8_float_kernels()}};
#if defined(__x86_64__)
  if (best_isa() >= Isa::kAvx2) {
    tables.push_back({"avx2", &avx2_float_kernels()});
#ifdef DUNLIN_SIMDE_TESTS
    tables.push_back({"avx512_simde", &simde_avx512_float_kernels()});
#endif
  }
  if (best_isa() >= Isa::kAvx512) tables.push_back({"avx512", &avx512_float_kernels()});
#elif defined(__aarch64__)
  if (best_isa() == Isa::kNeon) tables.push_back({"neon", &neon_float_kernels()});
#endif
  return tables;
}

}  // namespace dunlin
