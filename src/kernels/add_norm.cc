#include "kernels/norm.h"
#include "kernels/row_chunks.h"

namespace dunlin {

void add_norm(ThreadPool& pool, Isa isa, const AddNorm& op, std::int64_t num_tokens,
              Activations* out) {
  if (out != nullptr) out->reset(op.n);
  for_rows(pool, num_tokens, op.n, [&](std::int64_t token) {
    float* residual = op.residual + token * op.n;
    if (op.delta != nullptr) {
      float* delta = op.delta + token * op.n;
      normalize(isa, op.delta_norm, delta, op.n, delta);
      for (std::int64_t i = 0; i < op.n; ++i) residual[i] += op.delta_scale * delta[i];
    }
    float* normed = op.normed + token * op.n;
    normalize(isa, op.norm, residual, op.n, normed);
    if (out != nullptr) out->set_row(isa, token, normed);
  });
}

}  // namespace dunlin
