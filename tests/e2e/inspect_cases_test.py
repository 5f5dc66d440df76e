"""dunlin inspect over the hostile and odd GGUF files, and the vocabulary-only ones: exit status 0, or
1 with one line on stderr; never a signal, never much memory or time.

Usage: inspect_cases_test.py PATH_TO_DUNLIN PATH_TO_TESTS"""

import json
import pathlib
import resource
import subprocess
import sys
import tarfile
import tempfile
import unittest

TESTS = pathlib.Path(sys.argv.pop(2))
DUNLIN = sys.argv.pop(1)
MEMORY = 1 << 30


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def inspect(path):
    return subprocess.run([DUNLIN, "inspect", str(path)], capture_output=True, text=True, timeout=10,
                          preexec_fn=limit_memory)


class InspectCases(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def unpack(self, name):
        with tarfile.open(TESTS / "golden" / f"{name}.tar.xz") as archive:
            archive.extractall(self.folder.name)
        return pathlib.Path(self.folder.name) / name

    def test_each_case_ends_as_the_manifest_says(self):
        folder = self.unpack("gguf_cases")
        for line in (folder / "manifest.jsonl").read_text().splitlines():
            case = json.loads(line)
            with self.subTest(case["name"], why=case["why"]):
                path = folder / (case["name"] + ".gguf")
                self.assertTrue(path.exists())
                done = inspect(path)
                allowed = {"load": [0], "reject": [1], "either": [0, 1]}[case["expect"]]
                self.assertIn(done.returncode, allowed, done.stderr)
                if done.returncode == 1:
                    self.assertEqual(done.stdout, "")
                    self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                    self.assertIn(path.name, done.stderr)

    def test_a_weight_that_is_no_number_is_refused_by_its_tensor_and_row(self):
        done = inspect(self.unpack("gguf_cases") / "n1_nan_weight.gguf")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"n1_nan_weight\.gguf: tensor \S+: row \d+ .*not a finite number")

    def test_a_chat_template_that_can_not_be_parsed_is_refused_by_its_place(self):
        done = inspect(self.unpack("gguf_cases") / "g11_tmpl_broken.gguf")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"g11_tmpl_broken\.gguf: tokenizer\.chat_template: .*line \d+")

    def test_a_vocabulary_without_weights_is_sound(self):
        for path in sorted(self.unpack("tokenizers").glob("*.gguf")):
            with self.subTest(path.name):
                done = inspect(path)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("a vocabulary only", done.stdout)


if __name__ == "__main__":
    unittest.main()
