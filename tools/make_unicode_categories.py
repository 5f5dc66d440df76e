#!/usr/bin/env python3
"""Writes src/text/unicode_categories.inc: the general category of every code point, as runs.

    python3.13 tools/make_unicode_categories.py > src/text/unicode_categories.inc

The Unicode version is that of the interpreter's unicodedata (3.13: 15.1.0). Each row is
first_code_point << 5 | category, in ascending order; a run ends where the next one starts."""

import sys
import unicodedata

# The order of enum class Category in src/text/code_point_set.cc.
CATEGORIES = ("Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs "
              "Co Cn").split()


def main() -> None:
    rows = []
    previous = None
    for code_point in range(sys.maxunicode + 1):
        category = CATEGORIES.index(unicodedata.category(chr(code_point)))
        if category != previous:
            rows.append(f"0x{code_point << 5 | category:x},")
            previous = category
    print(f"// Unicode {unicodedata.unidata_version}. Written by tools/make_unicode_categories.py; don't edit.")
    for start in range(0, len(rows), 10):
        print(" ".join(rows[start:start + 10]))


main()
