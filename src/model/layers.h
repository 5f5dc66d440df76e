// The blocks that a decoder layer is made of. Each takes the normed input from scratch.acts and
// leaves what it adds to the residual in scratch.delta. A mixture of experts or a latent attention
// is another function of the same shape.
#pragma once

#include "kernels/activation.h"
#include "model/step.h"

namespace dunlin {

// Rows of the step that are still computed. The last layer computes nothing for tokens whose
// logits or hidden states nobody wants, once their keys and values are stored.
struct ActiveRows {
  std::int64_t count = 0;
  const std::int32_t* tokens = nullptr;  // [count] that rows 0..count of the scratch are; null: all
};

// Grouped-query attention with RoPE over the paged cache: Q, K and V, optional norms of heads,
// K and V into the cache, attention. Leaves scratch.attn_out for every token of the batch.
void attend(Step& step, const LayerWeights& weights, int layer_idx);

// The output projection of attention: attn_out -> delta, for the active rows (which this
// function gathers to the front where they aren't all; the residual's too).
void project_attention(Step& step, const LayerWeights& weights, const ActiveRows& rows);

GateFunction gate_function(Activation activation);

// The MLP: acts -> delta. down(activation(gate(x)) * up(x)), or down(activation(up(x))).
void mlp(Step& step, const LayerWeights& weights, const ActiveRows& rows);

// A parallel block behind attend(): the MLP of acts and the output projection, their sum
// in delta. Gathers as project_attention does.
void parallel_mlp(Step& step, const LayerWeights& weights, const ActiveRows& rows);

}  // namespace dunlin
