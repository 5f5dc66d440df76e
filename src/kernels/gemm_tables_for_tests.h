// The kernel tables that run on this machine, for the tests.
#pragma once

#include <vector>

#include "cpu/isa.h"
#include "kernels/gemm_dispatch.h"

namespace dunlin {

struct NamedKernels {
  const char* name;
  const GemmKernels* table;
};

#ifdef DUNLIN_SIMDE_TESTS
extern const GemmKernels kSimdeAvx512Gemm;
extern const GemmKernels kEmulatedAmxGemm;
#endif

inline std::vector<NamedKernels> kernels_to_test() {
  std::vector<NamedKernels> tables = {{"reference-q8", &kReferenceQ8Gemm}};
#if defined(__x86_64__)
  if (best_isa() >= Isa::kAvx2) tables.push_back({"avx2", &kAvx2Gemm});
  if (best_isa() >= Isa::kAvx512) tables.push_back({"avx512", &kAvx512Gemm});
  if (best_isa() >= Isa::kAmx) tables.push_back({"amx", &kAmxGemm});
#ifdef DUNLIN_SIMDE_TESTS
  if (best_isa() >= Isa::kAvx2) {
    tables.push_back({"avx512 over SIMDe", &kSimdeAvx512Gemm});
    tables.push_back({"amx emulated", &kEmulatedAmxGemm});
  }
#endif
#elif defined(__aarch64__)
  if (best_isa() == Isa::kNeon) tables.push_back({"neon", &kNeonGemm});
#endif
  return tables;
}

}  // namespace dunlin
