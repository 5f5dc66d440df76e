// ModelConfig: everything that the shared layers need to know of one model, in one plain struct.
// An architecture is a function that fills it in (registry.h); the layers never ask for a name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dunlin/pooling.h"
#include "dunlin/status.h"
#include "kernels/norm.h"
#include "kernels/rope.h"
#include "kv/kv_layout.h"

namespace dunlin {

enum class Activation {
  kSilu,           // x * sigmoid(x)
  kGeluTanh,       // the tanh form of GELU
  kGeluErf,        // GELU itself
  kClampedSwiglu,  // GPT-OSS's, of gate and up (kernels/activation.h)
};

// Peng et al., "YaRN: Efficient context window extension of large language models", 2023.
struct YarnConfig {
  float factor = 0.0f;       // 0: no YaRN
  int original_context = 0;  // tokens
  float beta_fast = 32.0f;   // turns within the original context above which nothing changes
  float beta_slow = 1.0f;    // and below which positions are divided by `factor`
  bool round_ramp = true;    // the ramp between begins and ends at whole dimensions
};

// Which tensor divides the frequencies.
enum class RopeFactors {
  kNone,
  kOne,        // rope_freqs.weight (Llama 3.1 and later)
  kLongShort,  // rope_factors_long.weight beyond the original context, else ..._short (Phi-3)
};

// Rotary positions of a kind of layer. Frequency i of dims/2 is
// theta^(-2i/dims) / position_divisor, / factors[i] where the model has a factor tensor, and
// between the two for YaRN.
struct RopeConfig {
  float theta = 10000.0f;
  int dims = 0;                   // leading dimensions of a head that rotate; even
  float position_divisor = 1.0f;  // linear scaling: 8 stretches the context eight times
  RopeStyle style = RopeStyle::kRotateHalf;
  RopeFactors factors = RopeFactors::kNone;
  YarnConfig yarn{};
  int original_context = 0;       // tokens, where yarn or factors want it
  float attention_factor = 1.0f;  // multiplies rotated queries and keys
};

inline constexpr int kNoRope = -1;

// How a router's logits become scores.
enum class ExpertScoring {
  kSoftmax,
  kSigmoid,
  kSoftmaxOfChosen,  // chosen by the logits themselves; the softmax is over the chosen ones only
};

inline constexpr int kMaxExperts = 1024;

// A mixture of experts (model/moe.h).
struct MoeConfig {
  int num_experts = 0;  // 0: no layer has one
  int experts_per_token = 0;
  int ffn_size = 0;  // of an expert
  ExpertScoring scoring = ExpertScoring::kSoftmax;
  bool normalize = false;        // the scores of the chosen are divided by their sum
  float scale = 1.0f;            // and multiplied by this, for their weights
  bool correction_bias = false;  // a bias on scores that counts for the choice, not the weights
  // Experts are chosen from the best groups only; of neighbouring experts, equally large.
  int num_groups = 1;
  int groups_per_token = 1;
  bool two_score_a_group = false;  // the sum of its two best experts, else the best one
  int shared_ffn_size = 0;         // of the expert that all tokens take; 0: there is none
  bool shared_gate = false;        // its output is multiplied by a sigmoid for each token
  bool bias = false;               // on the router and on the experts' matrices
};

struct LayerConfig {
  int window = 0;            // 0: full attention; else tokens that a query sees, itself included
  int rope_idx = 0;          // into ModelConfig::ropes; kNoRope: positions don't enter
  bool has_experts = false;  // a mixture of experts instead of the MLP
};

// Multi-head latent attention (DeepSeek-AI, "DeepSeek-V2", 2024). A token's keys and values are one
// latent vector, shared by all heads, and beside it one rotated key. The latent is what the cache
// holds: the matrices that would make keys of it are multiplied into the queries, those that would
// make values into attention's output ("absorbed"). So to the cache it is one KV head of kv_rank +
// rope_dim dimensions, whose values are the first kv_rank of them.
struct LatentAttention {
  int kv_rank = 0;    // of the latent; 0: the model has plain attention
  int q_rank = 0;     // queries come through a latent of their own; 0: straight from the input
  int nope_dim = 0;   // of a head's query: without positions
  int rope_dim = 0;   // and with
  int value_dim = 0;  // of a head's output
  // The file has both matrices of a head in one, as they are before absorption.
  bool fused_kv_b = false;

  int query_dim() const { return nope_dim + rope_dim; }
};

// What the norms of Q and K are over.
enum class QkNorm {
  kNone,
  kHeads,  // each head by itself, one weight for all heads
  kWhole,  // all heads together
};

struct ModelConfig {
  std::string architecture;  // "llama"
  std::string name;          // the file's own name for itself, for people; may be empty

  int hidden_size = 0;
  int num_heads = 0;
  int num_kv_heads = 0;  // divides num_heads
  int head_dim = 0;      // of queries, keys and values; with latent attention of the cached keys
  int ffn_size = 0;
  int vocab_size = 0;
  int context_length = 0;  // trained context, tokens
  float norm_eps = 0.0f;

  float embedding_scale = 1.0f;    // embedding rows are multiplied by it (Gemma: sqrt(hidden_size))
  float attention_scale = 0.0f;    // scores = scale * q . k
  float attention_softcap = 0.0f;  // 0: none; else scores become cap * tanh(score / cap)
  float logit_softcap = 0.0f;      // the same for logits
  float logit_scale = 1.0f;        // logits are multiplied by it, before the cap
  float residual_scale = 1.0f;     // what a block adds to the residual is multiplied by it
  Activation activation = Activation::kSilu;

  bool tied_head = false;  // logits use the embedding matrix
  // A learned vector for each position of the context is added to the token's embedding.
  bool learned_positions = false;
  int num_token_types = 0;  // vectors, of which the first is added to every token; 0: none
  // Every token sees the whole text, and there is no head: hidden states only.
  bool is_encoder = false;
  Pooling pooling = Pooling::kLast;  // what embeddings are made of where a request doesn't say
  bool qkv_bias = false;
  bool o_bias = false;
  bool attention_sinks = false;  // a logit for each head that joins the softmax without a value
  bool ffn_bias = false;
  bool gated_mlp = true;  // down(activation(gate) * up), else down(activation(up))
  NormType norm = NormType::kRms;
  bool norm_bias = false;
  QkNorm qk_norm = QkNorm::kNone;  // RMSNorm before RoPE
  bool pre_norms = true;           // norms in front of attention and MLP
  bool post_norms = false;         // norms on the output of attention and MLP, before the residual
  // The residual becomes its own norm after each addition (BERT), instead of being read through
  // one: that of attn_norm behind the embedding and behind each layer's MLP, of ffn_norm behind
  // attention.
  bool norms_residual = false;
  bool parallel = false;  // attention and MLP read the same normed input, and are added at once
  bool parallel_norms = false;  // but each has a norm of its own
  // GGUF's name of the norm in front of the MLP is post_attention_norm, not ffn_norm.
  bool ffn_norm_is_post_attention = false;
  // GGUF files of the architecture have rows of Q and K in the order of tensor/row_order.h.
  bool gguf_interleaves_qk = false;

  LatentAttention latent{};
  MoeConfig moe{};
  std::vector<RopeConfig> ropes;
  std::vector<LayerConfig> layers;  // [num_layers]

  int num_layers() const { return static_cast<int>(layers.size()); }
  std::int64_t q_size() const { return std::int64_t{num_heads} * head_dim; }
  std::int64_t kv_size() const { return std::int64_t{num_kv_heads} * head_dim; }
  bool is_latent() const { return latent.kv_rank > 0; }
  // What the output projection of attention reads.
  std::int64_t attn_out_size() const {
    return is_latent() ? std::int64_t{num_heads} * latent.value_dim : q_size();
  }
};

// Holds every number against its range and the others: heads that KV heads don't divide, odd RoPE
// dimensions, a window of 0 ... The one place of such checks, for every file format. Messages use
// the words of GGUF's keys ("attention.head_count_kv").
Outcome validate(const ModelConfig& config);

// KV memory of a validated config with keys and values stored as `dtype` (F32, F16 or BF16).
KvLayout kv_layout(const ModelConfig& config, KvFormats formats);

}  // namespace dunlin
