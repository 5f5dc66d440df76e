#!/usr/bin/env python3
"""Holds per-ISA object files to internal linkage: check_weak_symbols.py OBJECT...

An inline function or template that a file built with -mavx2 instantiates becomes a weak symbol; the
linker keeps one copy of it for the whole program, perhaps this one, and the program then dies on
machines without AVX2. Prints each weak symbol that is defined, and exits 1. NM in the environment
names the nm to use."""

import os
import subprocess
import sys


def main(objects: list[str]) -> int:
    if not objects:
        print("no object files given")
        return 1
    found = []
    for path in objects:
        listing = subprocess.run([os.environ.get("NM", "nm"), "-C", "--defined-only", path], check=True,
                                 capture_output=True, text=True).stdout
        for line in listing.splitlines():
            fields = line.split(maxsplit=2)
            if len(fields) == 3 and fields[1] in "WVu":
                found.append(f"{path}: {fields[2]}")
    print("\n".join(found) if found else f"{len(objects)} files without weak symbols")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
