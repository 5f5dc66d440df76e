#include <algorithm>

#include "base/check.h"
#include "kernels/gemm.h"

namespace dunlin {

void Activations::reserve(std::int64_t max_tokens, std::int64_t max_cols, bool keep_float) {
  max_tokens_ = max_tokens;
  max_cols_ = (max_cols + 31) / 32 * 32;
  keep_float_ = keep_float;
  const auto elements = static_cast<std::size_t>(max_tokens * max_cols_);
  values_ = Buffer(keep_float ? elements * sizeof(float) : 0);
  reset(0);
}

void Activations::reset(std::int64_t cols) {
  DUNLIN_CHECK(cols <= max_cols_, "more columns than the activations have room for");
  cols_ = cols;
}

void Activations::set_row(Isa isa, std::int64_t token, const float* x) {
  DUNLIN_DCHECK(token >= 0 && token < max_tokens_, "token outside the activations");
  if (keep_float_) std::copy_n(x, cols_, values_.as<float>() + token * max_cols_);
  DUNLIN_CHECK(isa == Isa::kReference, "only the reference has activations so far");
}

const float* Activations::values(std::int64_t token) const {
  DUNLIN_DCHECK(keep_float_, "the activations keep no floats");
  return values_.as<float>() + token * max_cols_;
}

}  // namespace dunlin
