#!/usr/bin/env python3
"""Holds the #includes of src/ against the layers of ARCHITECTURE.md.

A folder may include itself, include/dunlin and the folders listed here, nothing else; test files
may also include tests/support. Prints each include that breaks this, and exits 1."""

import pathlib
import re
import sys

ALLOWED = {
    "base": [],
    "terminal": ["base"],
    "net": ["base"],
    "loadgen": ["base", "net"],
    "cpu": ["base"],
    "tensor": ["base"],
    "quant": ["base", "cpu", "tensor"],
    "kernels": ["base", "cpu", "tensor", "quant"],
    "formats": ["base", "tensor"],
    "text": ["base", "formats"],
    "grammar": ["base"],
    "kv": ["base", "tensor", "kernels"],
    "model": ["base", "cpu", "tensor", "quant", "kernels", "formats", "kv"],
    "sampling": ["base"],
    "engine": ["base", "kv", "model", "sampling"],
    "frontend": ["base", "cpu", "quant", "formats", "kv", "text", "grammar", "model", "sampling", "engine"],
    "chat": ["base", "terminal", "text", "sampling", "engine", "frontend"],
    "eval": ["base", "text", "sampling", "engine", "frontend"],
    "api": ["base", "sampling", "text", "engine", "frontend"],
    "server": ["base", "cpu", "engine", "frontend", "api"],
    "cli": ["base", "terminal", "net", "loadgen", "cpu", "tensor", "quant", "kernels", "formats", "text", "kv", "model",
            "sampling", "engine", "frontend", "chat", "eval", "api", "server"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def offences(root: pathlib.Path):
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in {".h", ".cc", ".cu", ".inc"}:
            continue
        folder = path.relative_to(root / "src").parts[0]
        if folder not in ALLOWED:
            yield f"{path.relative_to(root)}: folder {folder} has no layer; add it to tools/check_layers.py"
            continue
        for target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            first = target.split("/")[0]
            if first in {folder, "dunlin"} or first in ALLOWED[folder]:
                continue
            if first == "support" and path.stem.endswith(("_test", "_bench")):
                continue
            if "/" not in target and (path.parent / target).exists():
                continue
            yield f"{path.relative_to(root)}: includes {target}, which is not below {folder}"


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    found = list(offences(root))
    print("\n".join(found) if found else "layers: every include looks down")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
