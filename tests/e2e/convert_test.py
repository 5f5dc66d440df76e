"""dunlin convert: a folder becomes a GGUF file that inspect takes; nothing is overwritten, and a wrong
folder leaves no file.

Usage: convert_test.py PATH_TO_DUNLIN PATH_TO_TESTS"""

import base64
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

DUNLIN, TESTS = sys.argv[1], pathlib.Path(sys.argv[2])


def dunlin(*arguments, env=None):
    return subprocess.run([DUNLIN, *map(str, arguments)], capture_output=True, text=True, timeout=60,
                          check=False, env=env)


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
        for kind in ("auto", "f16", "Q8_0", "q4_k_m"):
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

    def test_a_folder_that_was_pulled_goes_by_its_name(self):
        pulled = self.folder / "cache" / "models" / "hf" / "org" / "tiny"
        shutil.copytree(self.model, pulled)
        (pulled / ".complete").touch()
        out = self.folder / "pulled.gguf"
        done = dunlin("convert", "--no-vocabulary", "--offline", "org/tiny", out,
                      env={**os.environ, "DUNLIN_CACHE": str(self.folder / "cache")})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(dunlin("inspect", out).returncode, 0)

    def test_what_is_no_folder_is_said_to_be_none(self):
        done = dunlin("convert", self.model / "model.safetensors", self.folder / "none.gguf")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is a file", done.stderr)
        done = dunlin("convert", "smollm2-135m", self.folder / "none.gguf")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is a file", done.stderr)
        self.assertNotIn("fetching", done.stderr)

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

    def test_a_unigram_vocabulary_comes_along(self):
        model = self.folder / "unigram"
        shutil.copytree(self.model, model)
        with tarfile.open(TESTS / "golden" / "hf_tokenizers.tar.xz") as archive:
            [name] = [n for n in archive.getnames() if n.endswith("hf-unigram/tokenizer.json")]
            file = json.load(archive.extractfile(name))
        del file["model"]["vocab"][json.loads((model / "config.json").read_text())["vocab_size"]:]
        space = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
        entry = {"type": "Precompiled",  # an empty map of characters
                 "precompiled_charsmap": base64.b64encode(bytes([4, 0, 0, 0, 0, 0, 0, 0, 0])).decode()}
        file["normalizer"] = {"type": "Sequence", "normalizers": [
            entry, {"type": "Prepend", "prepend": "\u2581"}, space]}
        file["pre_tokenizer"] = None
        (model / "tokenizer.json").write_text(json.dumps(file))
        out = self.folder / "unigram.gguf"
        done = dunlin("convert", model, out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("t5", dunlin("inspect", out).stdout)
        for text in ("the cat  sat\non", " a", "x\u20ac"):
            ids = [dunlin("tokenize", "--output", "ids", "--add-special", of, text).stdout
                   for of in (model, out)]
            self.assertEqual(ids[0], ids[1])
            self.assertGreater(len(ids[0].split()), 2)

    def test_the_experts_for_measurements_are_a_model(self):
        model, out = self.folder / "experts", self.folder / "experts.gguf"
        made = subprocess.run([sys.executable, str(TESTS.parent / "bench" / "make_experts.py"), str(model),
                               "--experts", "5", "--used", "2", "--hidden", "256", "--ffn", "64", "--layers", "1"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        done = dunlin("convert", "--no-vocabulary", "--type", "q8_0", model, out)
        self.assertEqual(done.returncode, 0, done.stderr)
        question = json.dumps({"id": 1, "ids": [5, 6, 7], "positions": [2], "top": 2})
        rows = [json.loads(subprocess.run([DUNLIN, "debug", "logits", "--model", str(of)], input=question,
                                          capture_output=True, text=True, timeout=60, check=True).stdout)["rows"]["2"]
                for of in (model, out)]
        for (_, stored), (_, quantised) in zip(*rows):
            self.assertAlmostEqual(stored, quantised, delta=0.05)

    def test_types_that_cannot_be_written_are_named(self):
        done = dunlin("convert", "--type", "iq4_xs", self.model, self.folder / "k.gguf")
        self.assertEqual(done.returncode, 2)
        self.assertIn("q8_0", done.stderr)
        self.assertIn("q4_k_m", done.stderr)

    def test_what_is_refused_is_not_said_to_be_converting(self):
        out = self.folder / "there2.gguf"
        out.write_text("mine")
        for model, target in ((self.model, out), (self.folder / "nothing", self.folder / "none.gguf")):
            done = dunlin("convert", "--no-vocabulary", model, target)
            self.assertEqual(done.returncode, 1)
            self.assertNotIn("converting", done.stderr)

    def make_model(self, name, rows):
        """A folder whose embedding has so many rows; zeros that take no room on the disk."""
        model, width = self.folder / name, 1024
        model.mkdir()
        (model / "config.json").write_text(json.dumps({
            "architectures": ["LlamaForCausalLM"], "hidden_size": width, "num_hidden_layers": 1,
            "num_attention_heads": 16, "intermediate_size": 256, "vocab_size": rows,
            "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "tie_word_embeddings": True}))
        layer = "model.layers.0."
        shapes = {
            "model.norm.weight": [width], layer + "input_layernorm.weight": [width],
            layer + "post_attention_layernorm.weight": [width],
            **{f"{layer}self_attn.{name}_proj.weight": [width, width] for name in "qkvo"},
            layer + "mlp.gate_proj.weight": [256, width], layer + "mlp.up_proj.weight": [256, width],
            layer + "mlp.down_proj.weight": [width, 256], "model.embed_tokens.weight": [rows, width]}
        header, end = {}, 0
        for name, shape in shapes.items():
            begin, end = end, end + 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
        text = json.dumps(header).encode()
        with open(model / "model.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.truncate(8 + len(text) + end)
        return model

    def stop_converting(self, model, out, stopping):
        """Sends the signal once the file is being written. The exit code and what was said."""
        part = pathlib.Path(f"{out}.part")
        with subprocess.Popen([DUNLIN, "convert", "--no-vocabulary", "--type", "q4_k", "--threads", "1",
                               str(model), str(out)], stderr=subprocess.PIPE, text=True) as process:
            deadline = time.monotonic() + 60
            while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(stopping)
            message = process.communicate(timeout=120)[1]
        return process.returncode, message

    def test_an_interrupted_conversion_leaves_nothing(self):
        out = self.folder / "large.gguf"
        code, message = self.stop_converting(self.make_model("large", 400_000), out, signal.SIGINT)
        self.assertEqual(code, 130, message)
        self.assertIn("interrupted", message)
        self.assertFalse(pathlib.Path(f"{out}.part").exists())
        self.assertFalse(out.exists())

    def test_a_killed_conversion_can_be_done_again(self):
        model, out = self.make_model("medium", 60_000), self.folder / "medium.gguf"
        part = pathlib.Path(f"{out}.part")
        code, message = self.stop_converting(model, out, signal.SIGKILL)
        self.assertEqual(code, -signal.SIGKILL, message)
        self.assertTrue(part.exists())
        self.assertFalse(out.exists())
        with open(part, "ab") as file:  # more than the whole
            file.truncate(100_000_000)
        again = dunlin("convert", "--no-vocabulary", "--type", "q4_k", model, out)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertFalse(part.exists())
        other = self.folder / "medium2.gguf"
        dunlin("convert", "--no-vocabulary", "--type", "q4_k", model, other)
        self.assertEqual(out.read_bytes(), other.read_bytes())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
