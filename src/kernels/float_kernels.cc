#include "kernels/float_kernels.h"

#include "base/check.h"

namespace dunlin {

const FloatKernels& float_kernels(Isa isa) {
  switch (isa) {
    case Isa::kReference: return reference_float_kernels();
    case Isa::kReferenceQ8: return reference_q8_float_kernels();
    case Isa::kPortable: return portable_float_kernels();
#if defined(__x86_64__)
    case Isa::kAvx2: return avx2_float_kernels();
    case Isa::kAvx512:
    case Isa::kAmx: return avx512_float_kernels();
#elif defined(__aarch64__)
    case Isa::kNeon: return neon_float_kernels();
#endif
    default: break;
  }
  DUNLIN_CHECK(false, "an instruction set without float kernels");
}

}  // namespace dunlin
