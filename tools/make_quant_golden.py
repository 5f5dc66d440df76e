#!/usr/bin/env python3
"""Writes tests/golden/quant/blocks.bin: known answers for src/quant from PyPI's gguf package.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install gguf==0.19.0
    /tmp/venv/bin/python tools/make_quant_golden.py

Records, little-endian: kind ("dequantize" or "quantize") and format, each in 16 bytes padded with
zeros; the number of floats and of bytes (u32 each); the stored bytes; the floats (f32).
dequantize: random bytes, and the floats they stand for. quantize: random floats, and their bytes.
"""

import pathlib
import struct

import gguf
import numpy as np

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/quant/blocks.bin"
# Byte offsets of the f16 scales in a block: random bytes there could be infinities.
HALVES = {
    "F16": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ4_NL": [0], "IQ4_XS": [0],
}
QUANTIZED = ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"]
rng = np.random.default_rng(20240601)


def halves(count):
    """Finite f16 numbers: of a weight's size, then any (subnormal, large, zero) in the second half."""
    usual = (rng.standard_normal(count) * 0.02).astype(np.float16)
    any_bits = rng.integers(0, 1 << 16, count).astype(np.uint16).view(np.float16)
    any_bits = np.where(np.isfinite(any_bits), any_bits, np.float16(0))
    return np.where(np.arange(count) < count // 2, usual, any_bits)


def record(kind, name, data, floats):
    floats = np.ascontiguousarray(floats, np.float32).ravel()
    head = struct.pack("<16s16sII", kind.encode(), name.encode(), floats.size, len(data))
    return head + data + floats.tobytes()


def main():
    out = b""
    for name in ["F32", "F16", "BF16", *[n for n in HALVES if n != "F16"]]:
        qtype = getattr(gguf.GGMLQuantizationType, name)
        block_size, block_bytes = gguf.GGML_QUANT_SIZES[qtype]
        num_blocks = 6 if block_size == 256 else 16 if block_size == 32 else 256
        blocks = rng.integers(0, 256, (num_blocks, block_bytes)).astype(np.uint8)
        if name in ("F32", "BF16"):
            values = rng.standard_normal(num_blocks).astype(np.float32).view(np.uint32)
            blocks = values.view(np.uint8).reshape(num_blocks, 4)[:, 4 - block_bytes:].copy()
        for offset in HALVES.get(name, []):
            blocks[:, offset:offset + 2] = halves(num_blocks).view(np.uint8).reshape(num_blocks, 2)
        with np.errstate(over="ignore"):
            floats = gguf.quants.dequantize(blocks, qtype)
        out += record("dequantize", name, blocks.tobytes(), floats)
    for name in QUANTIZED:
        scales = np.repeat(np.array([0.02, 1.0, 300.0, 1e-7]), 64).astype(np.float32)
        source = rng.standard_normal(256).astype(np.float32) * scales
        source[32:64] = 0
        source[96:128] = 1.5
        source[128] = -0.0
        qtype = getattr(gguf.GGMLQuantizationType, name)
        data = gguf.quants.quantize(source, qtype)
        out += record("quantize", name, data.tobytes(), source)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_bytes(out)
    print(OUT, len(out), "bytes")


if __name__ == "__main__":
    main()
