"""`dunlin plan` from config.json alone, from a GGUF file and from a folder, against known figures.

usage: plan_test.py DUNLIN MAKE_TINY_MODEL"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from tiny_model import tiny_model

DUNLIN, MAKE_TINY_MODEL = sys.argv[1:3]
GIB = 1 << 30

LLAMA_7B = {
    "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 11008,
    "max_position_embeddings": 131072, "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 32, "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16", "vocab_size": 32000,
}
MISTRAL_7B = LLAMA_7B | {"architectures": ["MistralForCausalLM"], "intermediate_size": 14336,
                         "num_key_value_heads": 8, "sliding_window": None}
LLAMA_70B = LLAMA_7B | {"hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64,
                        "num_hidden_layers": 80, "num_key_value_heads": 8}


class Plan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = tiny_model(cls, MAKE_TINY_MODEL)
        cls.folder = pathlib.Path(cls.model).parent

    def config(self, members):
        folder = tempfile.mkdtemp(dir=self.folder)
        path = pathlib.Path(folder) / "config.json"
        path.write_text(json.dumps(members))
        return str(path)

    def run_plan(self, model, *flags):
        return subprocess.run([DUNLIN, "plan", model, "--bandwidth", "20", *flags],
                              capture_output=True, text=True, timeout=120)

    def plan(self, model, *flags):
        done = self.run_plan(model, "--output", "json", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_kv_cache_of_known_models(self):
        for members, per_token, gibs in ((LLAMA_7B, 512, (2, 16, 64)), (MISTRAL_7B, 128, (0.5, 4, 16)),
                                         (LLAMA_70B, 320, (1.25, 10, 40))):
            config = self.config(members)
            for context, gib in zip((4096, 32768, 131072), gibs):
                found = self.plan(config, "--context", str(context))
                self.assertEqual(found["kv_bytes_per_token"], per_token * 1024)
                self.assertEqual(found["memory"]["kv_cache"], gib * GIB)

    def test_a_7b_model_in_bf16_and_int4(self):
        config = self.config(LLAMA_7B)
        for weights, billions in (("bf16", 14), ("int4", 3.5)):
            memory = self.plan(config, "--context", "4096", "--weights", weights)["memory"]
            self.assertAlmostEqual(memory["weights"] / 1e9, billions, delta=0.05 * billions)
            self.assertEqual(memory["kv_cache"], 2 * GIB)
            self.assertLess(memory["scratch"] + memory["overhead"], 2e9)
            self.assertEqual(memory["total"], sum(memory[part] for part in
                                                  ("weights", "kv_cache", "scratch", "overhead")))
        self.assertEqual(self.plan(config)["weights"], "bf16")

    def test_recommends_what_fits(self):
        config = self.config(LLAMA_7B)
        recommended = [self.plan(config, "--memory", size)["recommended"] for size in ("3G", "5G", "6G", "64G")]
        self.assertEqual(recommended, [None, "q3_k", "q4_k_m", "q8_0"])
        found = self.plan(config, "--memory", "12G", "--batch", "4")
        for row in found["formats"]:
            self.assertEqual(row["fits"], row["memory"]["total"] <= 12 * GIB)
            self.assertEqual(row["fits"], row["sequences_that_fit"] >= 4)

    def test_time_of_a_token_is_bytes_over_bandwidth(self):
        found = self.plan(self.config(LLAMA_7B), "--context", "4096", "--batch", "8")
        seconds, embedding = found["seconds_per_token"], 32000 * 4096 * 2
        weights, kv = found["memory"]["weights"] - embedding, 2 * GIB
        self.assertAlmostEqual(seconds["one_empty"], weights / 20e9, delta=1e-3)
        self.assertAlmostEqual(seconds["one_full"], (weights + kv) / 20e9, delta=1e-3)
        self.assertAlmostEqual(seconds["batch_full"], (weights + 8 * kv) / 20e9, delta=1e-3)

    def test_files_and_folders_with_weights(self):
        stored = self.plan(self.model, "--batch", "2")
        self.assertEqual((stored["weights"], stored["context"]), ("as stored", 2048))
        self.assertLess(self.plan(self.model, "--weights", "q8_0")["memory"]["weights"], stored["memory"]["weights"])
        folder = self.folder / "bare"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(MISTRAL_7B))
        self.assertEqual(self.plan(str(folder))["parameters"], 7241732096)

    def test_text_shows_the_same(self):
        done = self.run_plan(self.config(MISTRAL_7B), "--context", "8192", "--batch", "4", "--memory", "9G",
                             "--weights", "q4_k_m")
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("7.24 billion parameters", "4 x 8,192 tokens, 128 KiB a token", "x 32", "131,072",
                      "within the 9 GiB of --memory", "at 20.0 GB/s", "<- recommended"):
            self.assertIn(words, done.stdout)

    def test_says_what_is_wrong(self):
        unknown = self.config(LLAMA_7B | {"architectures": ["NoSuchForCausalLM"]})
        for model, flags, words in ((unknown, (), "NoSuchForCausalLM"),
                                    (str(self.folder / "none.json"), (), "none.json"),
                                    (self.config({"architectures": ["LlamaForCausalLM"]}), (), "hidden_size"),
                                    (self.model, ("--context", "4096"), "2048")):
            done = self.run_plan(model, *flags)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
