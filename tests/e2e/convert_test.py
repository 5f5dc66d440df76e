"""dunlin convert: a folder becomes a GGUF file that inspect takes; nothing is overwritten, and a wrong
folder leaves no file.

Usage: convert_test.py PATH_TO_DUNLIN PATH_TO_TESTS"""

import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

DUNLIN, TESTS = sys.argv[1], pathlib.Path(sys.argv[2])


def dunlin(*arguments):
    return subprocess.run([DUNLIN, *map(str, arguments)], capture_output=True, text=True, timeout=60,
                          check=False)


class ConvertTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        with tarfile.open(TESTS / "golden" / "tiny.tar.xz") as archive:
            members = [m for m in archive.getmembers() if m.name.startswith("tiny/qwen3/")]
            archive.extractall(cls.folder, members=members)
        cls.model = cls.folder / "tiny" / "qwen3"

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_the_file_is_one_that_inspect_takes(self):
        for kind in ("auto", "f16", "Q8_0"):
            out = self.folder / f"{kind}.gguf"
            done = dunlin("convert", "--no-vocabulary", "--type", kind, self.model, out)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, "")
            shown = dunlin("inspect", out)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertIn("qwen3", shown.stdout)

    def test_a_file_that_is_there_stays(self):
        out = self.folder / "there.gguf"
        out.write_text("mine")
        done = dunlin("convert", "--no-vocabulary", self.model, out)
        self.assertEqual(done.returncode, 1)
        self.assertIn("already there", done.stderr)
        self.assertEqual(out.read_text(), "mine")

    def test_a_wrong_folder_leaves_no_file(self):
        out = self.folder / "none.gguf"
        done = dunlin("convert", self.folder, out)
        self.assertEqual(done.returncode, 1)
        self.assertIn("config.json", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertFalse(out.exists())
        self.assertFalse(pathlib.Path(f"{out}.part").exists())

    def test_without_a_tokenizer_the_way_out_is_named(self):
        done = dunlin("convert", self.model, self.folder / "none.gguf")
        self.assertEqual(done.returncode, 1)
        self.assertIn("tokenizer.json", done.stderr)
        self.assertIn("--no-vocabulary", done.stderr)

    def test_types_that_cannot_be_written_are_named(self):
        done = dunlin("convert", "--type", "q4_k", self.model, self.folder / "k.gguf")
        self.assertEqual(done.returncode, 2)
        self.assertIn("q8_0", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
