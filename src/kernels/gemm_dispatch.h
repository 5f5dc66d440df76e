// The kernel table of an instruction set. Internal to kernels/.
#pragma once

#include "cpu/isa.h"
#include "kernels/gemm_panels.h"

namespace dunlin {

// Any Isa but kReference, which has no panels.
const GemmKernels& gemm_kernels(Isa isa);

}  // namespace dunlin
