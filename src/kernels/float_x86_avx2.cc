// The float kernels for AVX2 + FMA + F16C.
#include "kernels/vec_x86_avx2.h"

#define DUNLIN_FLOAT_TABLE avx2_float_kernels
#include "kernels/float_table.inc"
