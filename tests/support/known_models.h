// config.json of models whose sizes everybody knows.
#pragma once

namespace dunlin {

inline constexpr const char* kLlama7bConfig = R"({
  "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 11008,
  "max_position_embeddings": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 32, "rms_norm_eps": 1e-5, "rope_scaling": null,
  "tie_word_embeddings": false, "torch_dtype": "float16", "vocab_size": 32000})";

inline constexpr const char* kMistral7bConfig = R"({
  "architectures": ["MistralForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336,
  "max_position_embeddings": 32768, "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 1000000.0, "sliding_window": null,
  "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 32000})";

inline constexpr const char* kLlama2_70bConfig = R"({
  "architectures": ["LlamaForCausalLM"], "hidden_size": 8192, "intermediate_size": 28672,
  "max_position_embeddings": 4096, "num_attention_heads": 64, "num_hidden_layers": 80,
  "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "tie_word_embeddings": false,
  "torch_dtype": "float16", "vocab_size": 32000})";

inline constexpr const char* kMixtralConfig = R"({
  "architectures": ["MixtralForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336,
  "max_position_embeddings": 32768, "num_attention_heads": 32, "num_experts_per_tok": 2,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8, "rms_norm_eps": 1e-5,
  "rope_theta": 1000000.0, "sliding_window": null, "tie_word_embeddings": false,
  "torch_dtype": "bfloat16", "vocab_size": 32000})";

inline constexpr const char* kGemma3Config = R"({
  "architectures": ["Gemma3ForCausalLM"], "head_dim": 256, "hidden_size": 640,
  "intermediate_size": 2048, "max_position_embeddings": 32768, "num_attention_heads": 4,
  "num_hidden_layers": 18, "num_key_value_heads": 1, "query_pre_attn_scalar": 256,
  "rms_norm_eps": 1e-6, "rope_local_base_freq": 10000.0, "rope_theta": 1000000.0,
  "sliding_window": 512, "torch_dtype": "bfloat16", "vocab_size": 262144})";

inline constexpr const char* kDeepseekV3Config = R"({
  "architectures": ["DeepseekV3ForCausalLM"], "first_k_dense_replace": 3, "hidden_size": 7168,
  "intermediate_size": 18432, "kv_lora_rank": 512, "max_position_embeddings": 163840,
  "moe_intermediate_size": 2048, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1,
  "norm_topk_prob": true, "num_attention_heads": 128, "num_experts_per_tok": 8,
  "num_hidden_layers": 61, "num_key_value_heads": 128, "num_nextn_predict_layers": 1,
  "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-6,
  "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0,
                   "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096, "type": "yarn"},
  "rope_theta": 10000, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
  "tie_word_embeddings": false, "topk_group": 4, "topk_method": "noaux_tc",
  "torch_dtype": "bfloat16", "v_head_dim": 128, "vocab_size": 129280})";

}  // namespace dunlin
