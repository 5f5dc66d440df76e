// Instruction sets that kernels are written for, and which of them this machine has.
#pragma once

#include <span>
#include <string_view>

#include "dunlin/status.h"

namespace dunlin {

enum class Isa {
  kReference,    // float activations, plain loops over dequantised weights: the truth, slow
  kReferenceQ8,  // the fast path's activation quantisation and order of sums, in scalar loops
  kPortable,     // the fast path without intrinsics
  kNeon,         // NEON with the dot products of Armv8.2 (Cortex-A76, Neoverse N1 and later)
  kAvx2,         // AVX2 + FMA + F16C
  kAvx512,       // AVX-512 F BW VL DQ VNNI (Cascade Lake, Ice Lake, Zen 4 and later)
  kAmx,          // AMX-TILE and AMX-INT8 beside those (Sapphire Rapids and later Xeons)
};

// "reference", "reference-q8", "portable", "neon", "avx2", "avx512", "amx"
std::string_view isa_name(Isa isa);
Result<Isa> parse_isa(std::string_view name);  // also "auto": best_isa()

Isa best_isa();                         // the fastest this machine has
std::span<const Isa> supported_isas();  // every one that runs here, reference first

}  // namespace dunlin
