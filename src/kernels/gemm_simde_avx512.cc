// The AVX-512 kernels over SIMDe: part of the test program, so that their text is tested on
// machines that have AVX2 only.
#define DUNLIN_SIMDE
#include "kernels/gemm_x86_avx512.cc"
