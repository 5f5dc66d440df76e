// A mixture of experts in the place of an MLP (Shazeer et al., "Outrageously large neural
// networks", 2017): a router chooses a few of many small MLPs for each token.
//
//   delta = shared(x) + sum over the chosen experts e, ascending: weight_e * expert_e(x)
//
// The pairs (token, expert) are sorted by expert, so that each expert's weights are read once a
// step, for all of its tokens; experts without tokens are not read. What a token gets depends on
// nothing else in the batch.
#pragma once

#include "model/layers.h"

namespace dunlin {

// acts -> delta, as mlp() does.
void mix_experts(Step& step, const MoeWeights& weights, const ActiveRows& rows);

}  // namespace dunlin
