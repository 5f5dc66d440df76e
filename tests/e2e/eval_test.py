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

    def test_says_what_is_wrong(self):
        self.refuses(1, "can't read", "perplexity", self.model, str(self.folder / "none.txt"))
        self.refuses(1, "give a longer text or a smaller --context", "perplexity", self.model, "-", "--context", "2048")
        self.refuses(1, "2049 tokens is asked for, but the model has 2048", "perplexity", self.model, self.text, "-c", "2049")
        self.refuses(2, "--context", "perplexity", self.model, self.text, "--context", "3")
        self.refuses(2, "FILE", "perplexity", self.model)
        self.refuses(2, "subcommand", "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
