#include "kernels/activation.h"
#include "kernels/float_kernels.h"
#include "kernels/norm.h"
#include "kernels/row_chunks.h"

namespace dunlin {

void add_norm(ThreadPool& pool, Isa isa, const AddNorm& op, std::int64_t num_tokens,
              Activations* out) {
  const FloatKernels& kernels = float_kernels(isa);
  if (out != nullptr) out->reset(op.n);
  for_rows(pool, num_tokens, op.n, [&](std::int64_t token) {
    float* residual = op.residual + token * op.n;
    if (op.delta != nullptr) {
      float* delta = op.delta + token * op.n;
      if (op.delta_weight != nullptr) kernels.rms_norm(delta, op.delta_weight, op.eps, op.n, delta);
      add(delta, op.n, residual);
    }
    float* normed = op.normed + token * op.n;
    kernels.rms_norm(residual, op.weight, op.eps, op.n, normed);
    if (out != nullptr) out->set_row(isa, token, normed);
  });
}

}  // namespace dunlin
