#include <algorithm>

#include "base/check.h"
#include "kernels/gemm.h"
#include "kernels/gemm_dispatch.h"
#include "kernels/scratch_sizes.h"

namespace dunlin {
namespace {

std::int64_t odd_stride(std::int64_t num_blocks) { return num_blocks | 1; }

}  // namespace

std::int64_t activations_bytes(std::int64_t max_tokens, std::int64_t max_cols, bool keep_float) {
  const std::int64_t blocks = max_tokens * odd_stride((max_cols + 31) / 32);
  return blocks *
         static_cast<std::int64_t>(sizeof(ActivationBlock) + (keep_float ? 32 * sizeof(float) : 0));
}

void Activations::reserve(std::int64_t max_tokens, std::int64_t max_cols, bool keep_float) {
  max_tokens_ = max_tokens;
  max_cols_ = (max_cols + 31) / 32 * 32;
  keep_float_ = keep_float;
  const auto blocks = static_cast<std::size_t>(max_tokens * odd_stride(max_cols_ / 32));
  blocks_ = Buffer(blocks * sizeof(ActivationBlock));
  values_ = Buffer(keep_float ? blocks * 32 * sizeof(float) : 0);
  view_ = {.num_blocks = 0,
           .stride = 0,
           .blocks = blocks_.as<ActivationBlock>(),
           .values = values_.as<float>()};
  reset(0);
}

void Activations::reset(std::int64_t cols) {
  DUNLIN_CHECK(cols <= max_cols_, "more columns than the activations have room for");
  cols_ = cols;
  view_.num_blocks = (cols + 31) / 32;
  view_.stride = odd_stride(view_.num_blocks);
}

const float* Activations::values(std::int64_t token) const {
  DUNLIN_DCHECK(keep_float_, "the activations keep no floats");
  return view_.values + token * view_.stride * 32;
}

void Activations::set_row(Isa isa, std::int64_t token, const float* x) {
  DUNLIN_DCHECK(token >= 0 && token < max_tokens_, "token outside the activations");
  if (keep_float_) std::copy_n(x, cols_, view_.values + token * view_.stride * 32);
  if (isa != Isa::kReference) gemm_kernels(isa).quantize_row(view_, token, x, cols_);
}

}  // namespace dunlin
