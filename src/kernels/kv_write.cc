#include "kernels/kv_write.h"

#include "kernels/float_kernels.h"

namespace dunlin {

void kv_write(Isa isa, const PagedKvLayer& layer, std::int64_t slot, const float* k,
              const float* v) {
  float_kernels(isa).kv_write(layer, slot, k, v);
}

}  // namespace dunlin
