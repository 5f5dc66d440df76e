// The float kernels of Isa::kReferenceQ8: AVX2's arithmetic to the last bit, in lanes that any
// machine has. The plain loops of float_reference.cc would not do: a difference in the last bit of
// an activation tips some of its int8 roundings, which tip others in the next layer, and behind
// thirty layers that is as much as the quantisation itself.
#define DUNLIN_EXACT_FMA
#include "kernels/vec_portable.h"

#define DUNLIN_FLOAT_TABLE reference_q8_float_kernels
#include "kernels/float_table.inc"
