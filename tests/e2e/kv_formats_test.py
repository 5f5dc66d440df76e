"""Every format of cached keys and values over HTTP: hits, preemption and company change no bit, blocks on disk
stay with their format, bytes are what the format says, and a wrong name is told.

usage: kv_formats_test.py DUNLIN MAKE_TINY_MODEL"""

import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

from api_client import post
from running_server import RunningServer
from tiny_model import tiny_model

DUNLIN, MAKE_TINY_MODEL = sys.argv[1:3]
FORMATS = ("f32", "f16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8", "int4")
PAIRS = [(name, name) for name in FORMATS] + [("int8", "int4")]


def prompt(seed, length):
    source = random.Random(seed)
    return [source.randrange(256) for _ in range(length)]


def ask(server, ids):
    """(the choice, cached tokens); drawn with log-probabilities, so that one different bit shows"""
    status, answer = post(server, "/v1/completions", {"prompt": ids, "max_tokens": 24, "seed": 7, "temperature": 1,
                                                      "logprobs": 3, "ignore_eos": True})
    assert status == 200, answer
    return answer["choices"][0], answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def flags_of(pair):
    return ("--cache-type-k", pair[0], "--cache-type-v", pair[1])


class KvFormats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = tiny_model(cls, MAKE_TINY_MODEL)
        cls.folder = pathlib.Path(cls.model).parent

    def test_hits_and_company_change_no_bit(self):
        seen = {}
        for pair in PAIRS:
            with RunningServer(DUNLIN, self.model, *flags_of(pair)) as server:
                prompts = [prompt(seed, 90 + 17 * seed) for seed in range(5)]
                alone = [ask(server, ids)[0] for ids in prompts]
                self.assertEqual([ask(server, ids)[0] for ids in prompts], alone, pair)
                self.assertGreater(ask(server, prompts[0])[1], 0)
            with RunningServer(DUNLIN, self.model, *flags_of(pair), "--max-batch-tokens", "32", "--kv-memory", "400K",
                               "--context", "256", "--no-prefix-cache") as server:
                with concurrent.futures.ThreadPoolExecutor(5) as pool:
                    self.assertEqual([choice for choice, _ in pool.map(lambda ids: ask(server, ids), prompts)], alone, pair)
            seen[pair] = json.dumps(alone)
        self.assertEqual(len(set(seen.values())), len(PAIRS), "each format rounds in its own way")

    def test_the_disk_keeps_formats_apart(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as disk:
            ids, first = prompt(3, 200), {}
            for turn in range(2):
                for name in ("f16", "int8", "int4"):
                    with RunningServer(DUNLIN, self.model, *flags_of((name, name)), "--prefix-cache-dir", disk) as server:
                        choice, cached = ask(server, ids)
                        if turn == 0:
                            server.wait_metric("dunlin:prefix_disk_blocks_written_total", 13)
                    self.assertEqual(cached > 0, turn == 1, name)
                    self.assertEqual(first.setdefault(name, choice), choice, name)

    def test_environment_variables_say_the_same(self):
        plan = [DUNLIN, "plan", self.model, "--bandwidth", "20", "--output", "json"]
        environment = os.environ | {"DUNLIN_CACHE_TYPE_K": "int8", "DUNLIN_CACHE_TYPE_V": "int4"}
        found = json.loads(subprocess.run(plan, env=environment, capture_output=True, check=True).stdout)
        self.assertEqual((found["cache_type_k"], found["cache_type_v"]), ("int8", "int4"))

    def test_bytes_are_those_of_the_format(self):
        config = self.folder / "config.json"
        config.write_text(json.dumps({
            "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 11008,
            "max_position_embeddings": 8192, "num_attention_heads": 32, "num_hidden_layers": 32,
            "num_key_value_heads": 32, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16", "vocab_size": 32000}))
        shares = {"f32": 2, "f16": 1, "bf16": 1, "fp8_e4m3": 0.5, "fp8_e5m2": 0.5, "int8": 0.515625, "int4": 0.2734375}
        for name, share in shares.items():
            done = subprocess.run([DUNLIN, "plan", str(config), "--bandwidth", "20", "--context", "4096", "--output", "json",
                                   *flags_of((name, name))], capture_output=True, check=True)
            self.assertEqual(json.loads(done.stdout)["memory"]["kv_cache"], share * (2 << 30), name)

    def test_divergence_against_another_format(self):
        text = self.folder / "text.txt"
        text.write_text("".join(f"{i} birds sat by the sea, and {i * i % 97} flew.\n" for i in range(60)))
        found = {}
        for name in ("f32", "int8", "int4"):
            done = subprocess.run([DUNLIN, "eval", "kld", self.model, str(text), "-c", "64", "--chunks", "3", "--isa", "reference",
                                   *flags_of((name, name)), "--against", "f16", "-o", "json"], capture_output=True, check=True)
            found[name] = json.loads(done.stdout)["mean_kld"]
        self.assertLess(0, found["f32"])
        self.assertLess(found["f32"], found["int8"])
        self.assertLess(found["int8"], found["int4"])
        self.assertLess(found["int4"], 0.5)

    def test_a_wrong_name_is_told(self):
        for command in ("run", "serve", "plan", "bench"):
            for flag in ("--cache-type-k", "--cache-type-v"):
                done = subprocess.run([DUNLIN, command, self.model, flag, "q8_0"], capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 2, done.stderr)
                line = done.stderr.splitlines()[0]
                for words in (flag, "q8_0", *FORMATS):
                    self.assertIn(words, line)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
