// The float kernels without intrinsics, built with the program's baseline flags.
#include "kernels/vec_portable.h"

#define DUNLIN_FLOAT_TABLE portable_float_kernels
#include "kernels/float_table.inc"
