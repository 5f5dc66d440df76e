#!/usr/bin/env python3
"""dunlin debug logits: JSON lines in, JSON lines out, in order; errors are answers.

usage: debug_logits_test.py DUNLIN MAKE_TINY_MODEL"""

import json
import math
import subprocess
import sys
import tempfile


def ask(program, model, lines, *flags):
    result = subprocess.run(
        [program, "debug", "logits", "--model", model, *flags],
        input="".join(line + "\n" for line in lines), capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def main():
    program, make_tiny_model = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        model = folder + "/tiny.gguf"
        subprocess.run([make_tiny_model, model, "gemma3", "Q8_0"], check=True)
        ids = [(i * 7) % 250 for i in range(90)]
        questions = [
            {"id": "rows", "ids": ids, "positions": [89, 0, 3]},
            {"id": 2, "ids": ids, "top": 4},
            {"id": 3, "ids": ids[:4]},
            {"id": 4, "ids": [320]},
            {"id": 5, "ids": []},
            {"id": 6, "ids": [1], "positions": [1]},
            {"id": 7, "ids": [1], "top": 0},
        ]
        for isa in ("reference", "auto"):
            answers = ask(program, model, [json.dumps(q) for q in questions] + ["", "{"],
                          "--isa", isa)
            assert [a["id"] for a in answers] == ["rows", 2, 3, 4, 5, 6, 7, None], answers
            rows = answers[0]["rows"]
            assert list(rows) == ["0", "3", "89"] and all(len(row) == 320 for row in rows.values())
            # The row of a position depends on what is before it only, and not on the batch.
            assert answers[2]["rows"] == {"3": rows["3"]}
            row = rows["89"]
            norm = math.log(sum(math.exp(x) for x in row))
            best = sorted(range(320), key=lambda i: (-row[i], i))[:4]
            top = answers[1]["rows"]["89"]
            assert [pair[0] for pair in top] == best, (top, best)
            assert all(abs(pair[1] - (row[pair[0]] - norm)) < 1e-4 for pair in top)
            for answer, word in zip(answers[3:], ["0 to 319", "ids", "positions", "top", "JSON"]):
                assert word in answer["error"] and "rows" not in answer, answer

        refused = subprocess.run([program, "debug", "logits", "--model", folder + "/none.gguf"],
                                 input="", capture_output=True, text=True, timeout=60)
        assert refused.returncode == 1 and len(refused.stderr.splitlines()) == 1, refused
    print("debug logits: ok")


if __name__ == "__main__":
    main()
