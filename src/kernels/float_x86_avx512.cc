// The float kernels for AVX-512; over SIMDe in a test program, for machines without it.
#include "kernels/vec_x86_avx512.h"

#ifdef DUNLIN_SIMDE
#define DUNLIN_FLOAT_TABLE simde_avx512_float_kernels
#else
#define DUNLIN_FLOAT_TABLE avx512_float_kernels
#endif
#include "kernels/float_table.inc"
