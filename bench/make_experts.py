#!/usr/bin/env python3
"""Writes a Hugging Face folder of random weights with experts, to measure their speed with:

    bench/make_experts.py FOLDER [--experts 8] [--used 2] [--hidden 768] [--ffn 2048] [--layers 12]
    dunlin convert FOLDER experts.gguf --no-vocabulary --type q4_k_m
    dunlin bench experts.gguf; llama-bench -m experts.gguf"""

import argparse
import json
import math
import pathlib
import random
import struct

HEAD_DIM, KV_HEADS, VOCABULARY = 64, 4, 32000
# A BF16 of random bytes: any sign and fraction; the size of a weight.
UPPER_BYTE = bytes(0x3C | (byte & 0x80) for byte in range(256))


def shapes(options):
    hidden, ffn = options.hidden, options.ffn
    yield "model.embed_tokens.weight", (VOCABULARY, hidden)
    yield "lm_head.weight", (VOCABULARY, hidden)
    yield "model.norm.weight", (hidden,)
    for layer in range(options.layers):
        prefix = f"model.layers.{layer}."
        yield prefix + "input_layernorm.weight", (hidden,)
        yield prefix + "post_attention_layernorm.weight", (hidden,)
        for name in "qo":
            yield f"{prefix}self_attn.{name}_proj.weight", (hidden, hidden)
        for name in "kv":
            yield f"{prefix}self_attn.{name}_proj.weight", (KV_HEADS * HEAD_DIM, hidden)
        experts = prefix + "block_sparse_moe."
        yield experts + "gate.weight", (options.experts, hidden)
        for expert in range(options.experts):
            for name, shape in (("w1", (ffn, hidden)), ("w2", (hidden, ffn)), ("w3", (ffn, hidden))):
                yield f"{experts}experts.{expert}.{name}.weight", shape


def random_weights(count, generator):
    out = bytearray(2 * count)
    out[0::2] = generator.randbytes(count)
    out[1::2] = generator.randbytes(count).translate(UPPER_BYTE)
    return out


def write(options):
    options.folder.mkdir(parents=True, exist_ok=True)
    tensors = dict(shapes(options))
    header, end = {}, 0
    for name, shape in tensors.items():
        begin, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    generator = random.Random(7)
    with open(options.folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for shape in tensors.values():
            file.write(random_weights(math.prod(shape), generator))
    (options.folder / "config.json").write_text(json.dumps({
        "architectures": ["MixtralForCausalLM"], "vocab_size": VOCABULARY, "hidden_size": options.hidden,
        "intermediate_size": options.ffn, "num_hidden_layers": options.layers,
        "num_attention_heads": options.hidden // HEAD_DIM, "num_key_value_heads": KV_HEADS,
        "num_local_experts": options.experts, "num_experts_per_tok": options.used,
        "max_position_embeddings": 8192, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "tie_word_embeddings": False}))
    print(f"{options.folder}: {end / 2e6:.0f} million weights")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    for name, default in (("experts", 8), ("used", 2), ("hidden", 768), ("ffn", 2048), ("layers", 12)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    if options.hidden % (HEAD_DIM * KV_HEADS):
        parser.error(f"--hidden must be a multiple of {HEAD_DIM * KV_HEADS}")
    write(options)


if __name__ == "__main__":
    main()
