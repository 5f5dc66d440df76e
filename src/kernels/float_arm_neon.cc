// The float kernels for NEON.
#include "kernels/vec_arm_neon.h"

#define DUNLIN_FLOAT_TABLE neon_float_kernels
#include "kernels/float_table.inc"
