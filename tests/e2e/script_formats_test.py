#!/usr/bin/env python3
"""What scripts read: the formats of dunlin bench, bench batched, debug tokenize and debug template.

usage: script_formats_test.py DUNLIN MAKE_TINY_MODEL"""

import csv
import io
import json
import subprocess
import sys
import unittest

from tiny_model import tiny_model

DUNLIN, MAKE_TINY_MODEL = sys.argv[1:3]
del sys.argv[1:3]
# The names that llama-bench's readers look for.
BENCH_FIELDS = {"model_filename", "model_type", "model_size", "model_n_params", "n_threads", "n_prompt", "n_gen",
                "n_depth", "avg_ns", "stddev_ns", "avg_ts", "stddev_ts"}


class ScriptFormats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = tiny_model(cls, MAKE_TINY_MODEL)

    def dunlin(self, *arguments, stdin=""):
        done = subprocess.run([DUNLIN, *arguments], input=stdin, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def ask(self, lines, *arguments):
        """The answers of a `dunlin debug` command to JSON lines."""
        out = self.dunlin("debug", *arguments, stdin="".join(json.dumps(line) + "\n" for line in lines))
        return [json.loads(line) for line in out.splitlines()]

    def bench(self, *arguments):
        return self.dunlin("bench", self.model, "-r", "2", *arguments)

    def test_bench_json_has_a_record_of_each_test(self):
        records = json.loads(self.bench("-p", "16,8", "-n", "4", "-d", "0,8", "-t", "2,1", "-o", "json"))
        tests = [(r["n_threads"], r["n_depth"], r["n_prompt"], r["n_gen"]) for r in records]
        self.assertEqual(tests, [(threads, depth, *test) for threads in (2, 1) for depth in (0, 8)
                                 for test in ((16, 0), (8, 0), (0, 4))])
        for record in records:
            self.assertLessEqual(BENCH_FIELDS, record.keys())
            self.assertEqual(len(record["samples_ts"]), 2)
            self.assertAlmostEqual(record["avg_ts"], sum(record["samples_ts"]) / 2, delta=1e-6 * record["avg_ts"])

    def test_bench_csv_has_the_same_fields(self):
        rows = list(csv.DictReader(io.StringIO(self.bench("-p", "16", "-n", "4", "-t", "1", "-o", "csv"))))
        self.assertEqual([(row["n_prompt"], row["n_gen"]) for row in rows], [("16", "0"), ("0", "4")])
        for row in rows:
            self.assertLessEqual(BENCH_FIELDS, row.keys())
            self.assertGreater(float(row["avg_ts"]), 0)

    def test_bench_prints_a_table_of_llama_benchs_columns(self):
        lines = self.bench("-p", "16", "-n", "4", "-d", "8", "-t", "1").splitlines()
        columns = [name.strip() for name in lines[0].strip("|").split("|")]
        self.assertEqual(columns[:7], ["model", "size", "params", "backend", "threads", "test", "t/s"])
        tests = [line.strip("|").split("|")[5].strip() for line in lines[2:4]]
        self.assertEqual(tests, ["pp16 @ d8", "tg4 @ d8"])
        self.assertIn(" ± ", lines[2])
        self.assertRegex(lines[-1], r"time: \d+% prefill, \d+% decode")

    def test_bench_batched_takes_and_prints_llama_batched_benchs_names(self):
        flags = ["bench", "batched", self.model, "-npp", "16", "-ntg", "4", "-npl", "1,3", "-t", "1"]
        rows = [json.loads(line) for line in self.dunlin(*flags, "-o", "jsonl").splitlines()]
        self.assertEqual([(r["pp"], r["tg"], r["pl"], r["n_kv"], r["n_threads"]) for r in rows],
                         [(16, 4, 1, 20, 1), (16, 4, 3, 60, 1)])
        for row in rows:
            self.assertLessEqual({"t_pp", "speed_pp", "t_tg", "speed_tg", "t", "speed"}, row.keys())
            self.assertAlmostEqual(row["t"], row["t_pp"] + row["t_tg"])
        columns = [name.strip() for name in self.dunlin(*flags).splitlines()[0].strip("|").split("|")]
        self.assertEqual(columns, ["PP", "TG", "B", "N_KV", "T_PP s", "S_PP t/s", "T_TG s", "S_TG t/s", "T s", "S t/s"])

    def test_debug_tokenize_answers_in_order_with_ids_or_an_error(self):
        first, second, bad = self.ask([{"id": "x", "text": "ab"}, {"id": 2, "text": "ab", "add_special": True},
                                       {"id": 3}], "tokenize", "--model", self.model, "--vocab-only")
        self.assertEqual(first.keys(), {"id", "ids"})
        self.assertEqual((first["id"], second["id"], bad["id"]), ("x", 2, 3))
        self.assertEqual(second["ids"][-len(first["ids"]):], first["ids"])
        self.assertEqual(bad.keys(), {"id", "error"})

    def test_debug_template_takes_now_as_seconds_or_as_text(self):
        template = "{{ strftime_now('%Y-%m-%d') }}{{ x }}"
        moments = [1706702400, 1706702400.75, "2024-01-31", "2024-01-31T12:00:00", "2024-01-31 12:00:00"]
        answers = self.ask([{"id": i, "template": template, "vars": {"x": 1}, "now": now}
                            for i, now in enumerate(moments)], "template")
        self.assertEqual(answers, [{"id": i, "ok": True, "output": "2024-01-311"} for i in range(len(moments))])
        bad = [[], True, "soon", "2024-01-31T12", 1e300]
        for answer in self.ask([{"id": 1, "template": template, "vars": {}, "now": now} for now in bad], "template"):
            self.assertEqual(answer.keys(), {"id", "ok", "error"})
            self.assertFalse(answer["ok"])
            self.assertIn("now", answer["error"])


if __name__ == "__main__":
    unittest.main()
