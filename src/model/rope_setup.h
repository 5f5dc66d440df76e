// The frequencies of a model's rotary positions.
#pragma once

#include <vector>

#include "kernels/rope.h"
#include "model/config.h"

namespace dunlin {

// factors: the model's factor tensor, [dims / 2], where config.factors says that it has one.
RopeFrequencies make_frequencies(const RopeConfig& config, const std::vector<float>& factors);

}  // namespace dunlin
