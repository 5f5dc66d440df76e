// The AMX kernels over plain loops and SIMDe: part of the test program, so that their text is
// tested on machines that have AVX2 only.
#define DUNLIN_SIMDE
#define DUNLIN_EMULATE_AMX
#include "kernels/gemm_x86_amx.cc"
