#include "kernels/activation.h"
#include "kernels/row_chunks.h"

namespace dunlin {

void gated_rows(ThreadPool& pool, Isa isa, GateFunction function, float* gate, const float* up,
                std::int64_t stride, std::int64_t n, std::int64_t num_tokens, Activations* out) {
  if (out != nullptr) out->reset(n);
  for_rows(pool, num_tokens, n, [&](std::int64_t token) {
    float* row = gate + token * stride;
    gated(isa, function, row, up == nullptr ? nullptr : up + token * stride, n, row);
    if (out != nullptr) out->set_row(isa, token, row);
  });
}

}  // namespace dunlin
