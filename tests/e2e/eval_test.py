"""`dunlin eval` from end to end: its figures are whole and agree with each other, and it says what is wrong.

usage: eval_test.py DUNLIN MAKE_TINY_MODEL"""

import json
import math
import pathlib
import subprocess
import sys
import unittest

from tiny_model import tiny_model

DUNLIN, MAKE_TINY_MODEL = sys.argv[1:3]


class Eval(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = tiny_model(cls, MAKE_TINY_MODEL)
        cls.folder = pathlib.Path(cls.model).parent
        cls.text = str(cls.folder / "text.txt")
        pathlib.Path(cls.text).write_text("".join(f"{i} birds sat by the sea, and {i * i % 97} flew.\n" for i in range(99)))

    def run_eval(self, *arguments, input=""):
        return subprocess.run([DUNLIN, "eval", *arguments], capture_output=True, text=True, timeout=300, input=input)

    def eval(self, *arguments):
        done = self.run_eval(*arguments, "--output", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "", "a bar is for terminals")
        return json.loads(done.stdout)

    def refuses(self, code, words, *arguments):
        done = self.run_eval(*arguments)
        self.assertEqual(done.returncode, code, done.stdout)
        self.assertIn(words, done.stderr)
        if code == 1:
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_perplexity(self):
        found = self.eval("perplexity", self.model, self.text, "--context", "64", "--chunks", "5")
        self.assertEqual((found["context"], found["num_chunks"], found["num_scored_tokens"]), (64, 5, 5 * 31))
        self.assertAlmostEqual(found["perplexity"], math.exp(found["mean_nll"]), places=6)
        self.assertAlmostEqual(found["perplexity_error"], found["perplexity"] * found["mean_nll_error"], places=6)
        alone = self.eval("perplexity", self.model, self.text, "--context", "64", "--chunks", "5", "--max-seqs", "1",
                          "--threads", "1")
        self.assertEqual(alone["mean_nll"], found["mean_nll"], "a figure depends on no batch")
        done = self.run_eval("perplexity", self.model, "-", "-c", "64", "--chunks", "5",
                             input=pathlib.Path(self.text).read_text())
        self.assertIn(f"perplexity: {found['perplexity']:.4f} +/- {found['perplexity_error']:.4f}\n", done.stdout)
        self.assertIn("5 chunks of 64 tokens, 155 scored; ", done.stdout)

    def test_kld(self):
        flags = ("kld", self.model, self.text, "--context", "64", "--chunks", "3")
        found = self.eval(*flags, "--against-isa", "reference")
        self.assertEqual((found["num_chunks"], found["num_scored_tokens"]), (3, 93))
        self.assertGreater(found["mean_kld"], 0)
        self.assertLess(found["mean_kld"], 0.1)
        ascending = [found[name] for name in ("median_kld", "p99_kld", "p99_9_kld", "max_kld")]
        self.assertEqual(ascending, sorted(ascending))
        self.assertAlmostEqual(found["perplexity_ratio"], found["perplexity"] / found["base_perplexity"], places=6)
        alone = self.eval("perplexity", self.model, self.text, "--context", "64", "--chunks", "3")
        self.assertAlmostEqual(found["perplexity"] / alone["perplexity"], 1, places=6)
        other = tiny_model(type(self), MAKE_TINY_MODEL, "llama", "Q8_0", "7")
        far = self.eval(*flags, "--against-model", other)
        self.assertGreater(far["mean_kld"], 10 * found["mean_kld"])
        self.assertLess(far["same_top"], 0.9)
        self.refuses(1, "both sides are the same", *flags)

    def test_kv(self):
        picture = self.folder / "kv.svg"
        flags = ("kv", self.model, self.text, "--context", "96", "--chunks", "2", "--pairs", "8", "--depths", "64")
        found = self.eval(*flags, "--svg", str(picture), "--settings", "f16; int8;int8:int4;f16+window,sinks=4,window=32;"
                          "quest,budget=32;h2o,budget=48;snapkv,budget=32,window=16")
        rows = {row["setting"]: row for row in found["rows"]}
        self.assertEqual(list(rows)[:4], ["f16", "int8", "int8:int4", "f16+window,sinks=4,window=32"])
        for name in list(rows)[5:]:  # a model of two layers reads everything under quest
            self.assertGreater(rows[name]["mean_kld"], 0, f"{name}: the second half of a chunk is an answer")
        self.assertEqual((rows["f16"]["mean_kld"], rows["f16"]["share_of_f16"], rows["f16"]["perplexity_ratio"]), (0, 1, 1))
        self.assertLess(0, rows["int8"]["mean_kld"])
        self.assertLess(rows["int8"]["mean_kld"], rows["int8:int4"]["mean_kld"])
        self.assertLess(rows["int8:int4"]["share_of_f16"], rows["int8"]["share_of_f16"])
        self.assertEqual(rows["int8:int4"]["cache_type_v"], "int4")
        window = rows["f16+window,sinks=4,window=32"]
        self.assertLess(window["share_of_f16"], 0.6, "three blocks and a half of six")
        self.assertGreater(window["mean_kld"], 0)
        for row in found["rows"]:
            self.assertEqual([speed["depth"] for speed in row["decode"]], [64])
            self.assertGreater(row["decode"][0]["tokens_per_second"], 0)
        self.assertEqual(picture.read_text().count("<circle"), 7)
        kld = self.eval("kld", self.model, self.text, "--context", "96", "--chunks", "2", "--cache-type-k", "int8",
                        "--cache-type-v", "int8", "--against", "f16")
        self.assertAlmostEqual(kld["mean_kld"], rows["int8"]["mean_kld"], places=9)
        table = self.run_eval("kv", self.model, "--settings", "int4", "--pairs", "0", "--chunks", "1", "-c", "64")
        self.assertEqual(table.returncode, 0, table.stderr)
        self.assertIn("\nint4 ", table.stdout)
        for settings, words in (("int9", "int9"), ("int8:q", "'q'"), ("window,window=7", "window"), (";", "no setting")):
            self.refuses(1, words, *flags, "--settings", settings)

    def test_needle(self):
        picture = self.folder / "map.svg"
        flags = ("needle", self.model, "--lengths", "600,900", "--depths", "0,50,100", "--samples", "2")
        found = self.eval(*flags, "--svg", str(picture))
        self.assertEqual([(cell["depth"], cell["length"]) for cell in found["cells"]],
                         [(depth, length) for depth in (0, 0.5, 1) for length in (600, 900)])
        self.assertEqual(found["recall"], 0, "a random model knows nothing")
        self.assertEqual(picture.read_text().count(">0%</text>"), 7, "six cells and a depth")
        done = self.run_eval(*flags, "--task", "needle", "--chat")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^ 100%       0%       0%$")
        self.assertIn("recall: 0.0%", done.stdout)
        self.refuses(1, "100 tokens hold no text", "needle", self.model, "--lengths", "100")
        self.refuses(1, "the model has 2048", "needle", self.model, "--lengths", "4096")
        self.refuses(1, "--svg: can't write", *flags, "--svg", str(self.folder / "none" / "map.svg"))

    def test_recall(self):
        found = self.eval("recall", self.model, "--pairs", "4,20", "--queries", "5", "--samples", "2")
        self.assertEqual([(row["pairs"], row["queries"], row["recall"]) for row in found["rows"]], [(4, 8, 0), (20, 10, 0)])
        done = self.run_eval("recall", self.model, "--pairs", "8", "--chat")
        self.assertRegex(done.stdout, r"(?m)^ +8 +\d+ +32  0\.0% \+/- 0\.0%$")
        self.refuses(1, "the context holds", "recall", self.model, "--pairs", "400")

    def test_says_what_is_wrong(self):
        self.refuses(1, "can't read", "perplexity", self.model, str(self.folder / "none.txt"))
        self.refuses(1, "give a longer text or a smaller --context", "perplexity", self.model, "-", "--context", "2048")
        self.refuses(1, "2049 tokens is asked for, but the model has 2048", "perplexity", self.model, self.text, "-c", "2049")
        self.refuses(2, "--context", "perplexity", self.model, self.text, "--context", "3")
        self.refuses(2, "FILE", "perplexity", self.model)
        self.refuses(2, "subcommand", "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
