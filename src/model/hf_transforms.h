// What architectures' files make of stored tensors (HfTensorName::transform).
#pragma once

#include "dunlin/status.h"
#include "model/registry.h"
#include "tensor/tensor_view.h"

namespace dunlin {

// A vector of F32, F16 or BF16 with 1 added to each element, as F32.
Result<MadeTensor> plus_one(const TensorView& stored);

}  // namespace dunlin
