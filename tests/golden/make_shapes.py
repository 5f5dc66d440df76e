#!/usr/bin/env python3
"""Makes tests/golden/shapes.tar.xz: small checkpoints of unusual sizes with the logits that Hugging Face
transformers gives for them in float32. Run in an environment with torch, transformers and safetensors:

    python tests/golden/make_shapes.py OUT_FOLDER [NAME ...]
    tar -C OUT_FOLDER -cJf tests/golden/shapes.tar.xz shapes

Weights are numbers of a counter, so that the archive needs names and sizes only: a test writes the same
safetensors file from tensors.json (tests/support/seeded_checkpoint.h holds the formula).

shapes/NAME/config.json     as transformers writes it
shapes/NAME/tensors.json    [{"name", "shape", "seed", "centre", "amplitude"}], in the file's order
shapes/NAME/reference.json  input_ids, logits at some positions, greedy tokens and their margins
"""

import json
import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers import (AutoModelForCausalLM, Cohere2Config, DeepseekV2Config, DeepseekV3Config, FalconConfig,
                          Gemma2Config, Gemma3TextConfig, Glm4Config, GPT2Config, GptOssConfig, GraniteConfig, LlamaConfig,
                          MistralConfig, MixtralConfig, Olmo2Config, Phi3Config, Qwen2Config, Qwen2MoeConfig, Qwen3Config,
                          Qwen3MoeConfig, SmolLM3Config, Starcoder2Config)

POSITIONS = (0, 1, 7, 15, 16, 31, 63, 94)
PROMPT_TOKENS = 95
GREEDY_FROM = 48
GREEDY_TOKENS = 24


def shape(config, heads, kv_heads, head, layers, vocab, **more):
    """Sizes that most configurations name alike; hidden and intermediate are no multiples of 64."""
    sizes = dict(vocab_size=vocab, hidden_size=72, intermediate_size=104, num_hidden_layers=layers, num_attention_heads=heads,
                 num_key_value_heads=kv_heads, head_dim=head, max_position_embeddings=256, tie_word_embeddings=False,
                 bos_token_id=0, eos_token_id=1, pad_token_id=None)
    return config(**{**sizes, **more})


MLA = dict(qk_nope_head_dim=24, v_head_dim=40, moe_intermediate_size=40, first_k_dense_replace=1)
SPECS = {
    "llama-80": shape(LlamaConfig, 3, 1, 80, 5, 321),
    "llama-96": shape(LlamaConfig, 6, 2, 96, 1, 257, attention_bias=True),
    "mistral-112": shape(MistralConfig, 5, 5, 112, 3, 311, sliding_window=21),
    "mixtral-96": shape(MixtralConfig, 4, 2, 96, 3, 301, num_local_experts=5, num_experts_per_tok=3),
    "qwen2-112": shape(Qwen2Config, 2, 1, 112, 5, 333, hidden_size=224),
    "qwen3-80": shape(Qwen3Config, 7, 1, 80, 3, 319),
    "qwen2-moe-96": shape(Qwen2MoeConfig, 2, 2, 96, 3, 307, hidden_size=192, num_experts=7, num_experts_per_tok=3,
                          moe_intermediate_size=40, shared_expert_intermediate_size=56, norm_topk_prob=True),
    "qwen3-moe-112": shape(Qwen3MoeConfig, 4, 1, 112, 3, 299, num_experts=9, num_experts_per_tok=4,
                           moe_intermediate_size=24, norm_topk_prob=False),
    "gemma2-256": shape(Gemma2Config, 2, 1, 256, 5, 323, sliding_window=19, query_pre_attn_scalar=144,
                        tie_word_embeddings=True),
    "gemma3-256": shape(Gemma3TextConfig, 4, 1, 256, 7, 327, sliding_window=33, query_pre_attn_scalar=256,
                        tie_word_embeddings=True),
    "phi3-96": shape(Phi3Config, 3, 1, 96, 3, 331, hidden_size=288),
    "deepseek-v2-odd": shape(DeepseekV2Config, 3, 3, 8, 5, 313, q_lora_rank=None, kv_lora_rank=40, qk_rope_head_dim=8,
                             n_routed_experts=5, num_experts_per_tok=3, n_shared_experts=2, topk_method="greedy",
                             norm_topk_prob=False, routed_scaling_factor=1.5, n_group=1, topk_group=1, **MLA),
    "deepseek-v3-odd": shape(DeepseekV3Config, 5, 5, 12, 3, 317, q_lora_rank=24, kv_lora_rank=48, qk_rope_head_dim=12,
                             n_routed_experts=9, num_experts_per_tok=4, n_shared_experts=1, n_group=3, topk_group=2,
                             norm_topk_prob=True, routed_scaling_factor=2.5, **MLA),
    "olmo2-96": shape(Olmo2Config, 3, 3, 96, 3, 303, hidden_size=288),
    "granite-80": shape(GraniteConfig, 2, 1, 80, 3, 305, hidden_size=160, embedding_multiplier=3.0, residual_multiplier=0.3,
                        attention_multiplier=0.02, logits_scaling=2.0),
    "gpt-oss-80": shape(GptOssConfig, 6, 2, 80, 3, 309, num_local_experts=5, num_experts_per_tok=3, sliding_window=13),
    "starcoder2-112": shape(Starcoder2Config, 2, 1, 112, 3, 315, hidden_size=224, use_bias=True, sliding_window=None),
    "cohere2-96": shape(Cohere2Config, 3, 1, 96, 7, 325, sliding_window=17, tie_word_embeddings=True, logit_scale=0.5),
    "smollm3-80": shape(SmolLM3Config, 2, 1, 80, 5, 329, hidden_size=160, no_rope_layer_interval=2),
    "glm4-96": shape(Glm4Config, 4, 1, 96, 3, 335, partial_rotary_factor=0.25, attention_bias=True),
    "gpt2-80": GPT2Config(vocab_size=337, n_embd=240, n_layer=3, n_head=3, n_positions=128, n_inner=104, bos_token_id=0,
                          eos_token_id=1),
    "falcon-bias": FalconConfig(vocab_size=339, hidden_size=160, num_hidden_layers=3, num_attention_heads=2, bias=True,
                                alibi=False, parallel_attn=True, multi_query=True, new_decoder_architecture=False,
                                max_position_embeddings=256, bos_token_id=0, eos_token_id=1),
}


def counter_values(seed, count, centre, amplitude):
    """centre + amplitude * u, u in [-1, 1) from the upper 24 bits of splitmix64 (Steele et al., 2014)."""
    with np.errstate(over="ignore"):
        z = (np.uint64(seed << 32) + np.arange(1, count + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    u = (z >> np.uint64(40)).astype(np.float64) / (1 << 23) - 1.0
    return (centre + amplitude * u).astype(np.float32)


def recipe(name, tensor, index, model_name):
    """What a tensor is filled with: matrices keep the size of activations, norms lie about one."""
    if tensor.dim() > 1:
        fan_in = tensor.shape[0] if model_name.startswith("gpt2") and ".c_" in name else tensor.shape[-1]
        if model_name.startswith("gpt-oss") and name.endswith("_proj"):
            fan_in = tensor.shape[-2]
        centre, amplitude = 0.0, round(1.5 / fan_in ** 0.5, 4)
    elif ("norm" in name or "ln_" in name) and name.endswith("weight"):
        centre, amplitude = (0.0 if model_name.startswith("gemma") else 1.0), 0.25
    else:
        centre, amplitude = 0.0, 0.2
    return {"name": name, "shape": list(tensor.shape), "seed": 1000 + index, "centre": centre, "amplitude": amplitude}


def write_model(folder, name, config):
    torch.manual_seed(1)
    AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().save_pretrained(folder)
    path = folder / "model.safetensors"
    recipes = [recipe(key, tensor, index, name) for index, (key, tensor) in enumerate(sorted(load_file(path).items()))]
    filled = {r["name"]: torch.from_numpy(counter_values(r["seed"], int(np.prod(r["shape"])), r["centre"], r["amplitude"])
                                          .reshape(r["shape"])) for r in recipes}
    save_file(filled, path, metadata={"format": "pt"})
    (folder / "tensors.json").write_text(json.dumps(recipes))


def reference(folder, vocab):
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    prompt = [(i * 41 + i * i // 5) % (vocab - 2) + 2 for i in range(PROMPT_TOKENS)]
    with torch.no_grad():
        logits = model(torch.tensor([prompt])).logits[0]
        greedy = prompt[:GREEDY_FROM]
        margins = []
        for _ in range(GREEDY_TOKENS):
            best = torch.topk(model(torch.tensor([greedy])).logits[0, -1], 2)
            margins.append(round(float(best.values[0] - best.values[1]), 4))
            greedy.append(int(best.indices[0]))
    return {"input_ids": prompt,
            "logits": {str(at): [round(value, 5) for value in logits[at].tolist()] for at in POSITIONS},
            "greedy_from_first_48": greedy[GREEDY_FROM:], "greedy_margins": margins}


def main():
    root = pathlib.Path(sys.argv[1]) / "shapes"
    for name in sys.argv[2:] or SPECS:
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        write_model(folder, name, SPECS[name])
        record = reference(folder, SPECS[name].vocab_size)
        (folder / "reference.json").write_text(json.dumps(record))
        for leftover in ("model.safetensors", "generation_config.json"):
            (folder / leftover).unlink(missing_ok=True)
        print(name, "margin", min(record["greedy_margins"]), "largest", max(map(max, record["logits"].values())))


if __name__ == "__main__":
    main()
