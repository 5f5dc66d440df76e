// Which experts compute a token, and with what weight. One token at a time, from nothing but its
// own router logits, in scalar float arithmetic that is the same in every instruction set.
#pragma once

#include <cstdint>

#include "model/config.h"

namespace dunlin {

// logits [num_experts] of the router; they become scores. correction_bias [num_experts] or null.
// chosen [experts_per_token]: ascending; weights: theirs. Among equals the lowest expert is
// chosen; a score that is not a number comes first, so that it shows in the result.
void route(const MoeConfig& config, const float* correction_bias, float* logits,
           std::int32_t* chosen, float* weights);

}  // namespace dunlin
