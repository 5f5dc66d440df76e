// The numbers of a mixture of experts, for the architectures that have one.
#pragma once

#include "model/config.h"
#include "model/hf_import.h"
#include "model/hparams.h"

namespace dunlin {

// Reads config.moe from the keys expert_count, expert_used_count, ... Where a key is missing the
// value stays as the architecture has set it. Nothing where the file has no experts. The layers
// with a router ("blk.N.ffn_gate_inp.weight") get experts, from leading_dense_block_count on.
void read_experts(Hparams& hparams, ModelConfig& config);

// Those keys from config.json, in the spellings of Mixtral, Qwen and DeepSeek.
void import_experts(HfImport& import);

// Whether config.json gives a layer experts: first_k_dense_replace, moe_layer_freq,
// decoder_sparse_step and mlp_only_layers.
bool hf_layer_has_experts(const HfConfig& config, std::int64_t layer);

}  // namespace dunlin
