// The weights of a loaded model, and the one list of its tensors: what a file is checked against
// and what the loader fills in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dunlin/status.h"
#include "formats/checkpoint.h"
#include "model/config.h"
#include "quant/packed_matrix.h"
#include "tensor/row_order.h"

namespace dunlin {

struct LinearWeights {
  PackedMatrix matrix;      // [out, in]
  std::vector<float> bias;  // [out], or empty

  const float* bias_data() const { return bias.empty() ? nullptr : bias.data(); }
};

struct NormWeights {
  std::vector<float> weight;  // empty: no such norm
  std::vector<float> bias;    // the same size, or empty
};

// Of latent attention (LatentAttention in config.h); empty in layers without.
struct LatentWeights {
  LinearWeights q_a;               // [q_rank, hidden_size]; empty where LayerWeights::q is there
  NormWeights q_a_norm;            // [q_rank]
  LinearWeights q_b;               // [num_heads * query_dim, q_rank]
  LinearWeights kv_a;              // [kv_rank + rope_dim, hidden_size]
  NormWeights kv_a_norm;           // [kv_rank]
  std::vector<LinearWeights> k_b;  // [num_heads] of [kv_rank, nope_dim]
  std::vector<LinearWeights> v_b;  // [num_heads] of [value_dim, kv_rank]
};

struct MlpWeights {
  LinearWeights gate, up, down;  // [ffn_size, hidden_size] twice, [hidden_size, ffn_size]
};

struct MoeWeights {
  LinearWeights router;                // [num_experts, hidden_size]
  std::vector<float> correction_bias;  // [num_experts], or empty
  std::vector<MlpWeights> experts;
  MlpWeights shared;          // where there is one
  LinearWeights shared_gate;  // [1, hidden_size], or empty
};

struct LayerWeights {
  NormWeights attn_norm;       // [hidden_size] each
  LinearWeights q, k, v, o;    // [q_size | kv_size | kv_size, hidden_size], [hidden_size, q_size]
  NormWeights q_norm, k_norm;  // [head_dim], or [q_size] and [kv_size]
  LatentWeights latent;        // q (or not) and o beside it, k and v empty
  std::vector<float> sinks;    // [num_heads], or empty
  std::vector<float> common_keys;  // [kv_size] left out of what is cached, or empty; by Decoder
  NormWeights post_attn_norm;
  NormWeights ffn_norm;
  MlpWeights mlp;  // empty where the layer has experts
  MoeWeights moe;  // empty where it has none
  NormWeights post_ffn_norm;
};

struct Weights {
  LinearWeights token_embedding;          // [vocab_size, hidden_size]
  LinearWeights position_embedding;       // [context_length, hidden_size]; empty: no learned ones
  LinearWeights token_types;              // [num_token_types, hidden_size]; empty: none
  NormWeights output_norm;                // [hidden_size]
  LinearWeights head;                     // [vocab_size, hidden_size]; empty where tied or none
  std::vector<float> rope_factors;        // [dims / 2 of RoPE 0], or empty
  std::vector<float> rope_factors_short;  // the same, for contexts up to the original one
  std::vector<LayerWeights> layers;
};

// One tensor: its canonical name, its shape, and where it goes. Exactly one target is set.
struct TensorSlot {
  std::string name;
  std::int64_t rows = 1;  // 1 for vectors
  std::int64_t cols = 0;
  PackedMatrix* matrix = nullptr;
  std::vector<float>* vector = nullptr;
  RowOrder gguf_order{};  // of the rows (of a vector: the elements) in GGUF files

  // Where there is no tensor `name`: a part of this one, as fused projections and stacked experts
  // are stored. Of its whole_rows rows (elements, for a vector) those from first_row on.
  std::string whole{};
  std::int64_t first_row = 0;
  std::int64_t whole_rows = 0;
  bool part_is_transposed = false;  // the part is [cols, rows]
};

// Sizes `weights.layers` and lists every tensor of the model, in the order a file has them.
// The slots point into `weights`.
std::vector<TensorSlot> tensor_slots(const ModelConfig& config, Weights& weights);

// The tensor of a slot: of the model's shape and of a type that can be computed with. The message
// names the tensor.
struct FoundTensor {
  std::string name;  // of the tensor that the view is, or is a part of
  TensorView view;
  RowOrder order;
  bool is_transposed = false;  // the view is [cols, rows] of the slot
};
Result<FoundTensor> find_tensor(const WeightSource& source, const TensorSlot& slot);

// Whether `source` has every tensor of the model. Reads no weights.
Outcome check_tensors(const ModelConfig& config, const WeightSource& source);

// The same for a checkpoint, which also must not have tensors that the model would ignore: they
// would have changed its results.
Outcome check_checkpoint(const ModelConfig& config, const Checkpoint& checkpoint);

}  // namespace dunlin
