"""The prefix cache over HTTP: what a hit tells and what it must not change, salts, the reset
endpoint, preemption, the disk; on a model with full attention and on one with sliding windows.

usage: prefix_cache_test.py DUNLIN MAKE_TINY_MODEL"""

import concurrent.futures
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

from api_client import EventStream, post, post_bytes
from running_server import RunningServer

COMPLETIONS = "/v1/completions"
DUNLIN, MAKE_TINY_MODEL = sys.argv[1:3]
FOLDER = tempfile.TemporaryDirectory()


def model(architecture):
    path = pathlib.Path(FOLDER.name) / f"{architecture}.gguf"
    if not path.exists():
        subprocess.run([MAKE_TINY_MODEL, str(path), architecture], check=True)
    return str(path)


def prompt(seed, length):
    source = random.Random(seed)
    return [source.randrange(256) for _ in range(length)]


def request(ids, **fields):
    """Drawn with a seed and with log-probabilities, so that one different bit shows."""
    return {"prompt": ids, "max_tokens": 24, "seed": 7, "temperature": 1, "logprobs": 3, "ignore_eos": True} | fields


def ask(server, ids, headers=None, **fields):
    """(the choice, cached tokens)"""
    status, answer = post(server, COMPLETIONS, request(ids, **fields), headers)
    assert status == 200, answer
    return answer["choices"][0], answer["usage"]["prompt_tokens_details"]["cached_tokens"]


class PrefixCache:
    """The cases, for the model of a subclass."""

    architecture = None

    def serve(self, *flags, **kwargs):
        return RunningServer(DUNLIN, model(self.architecture), *flags, **kwargs)

    def test_a_hit_is_told_and_changes_no_bit(self):
        with self.serve() as server:
            ids = prompt(1, 200)
            miss, cached = ask(server, ids)
            self.assertEqual(cached, 0)
            hit, cached = ask(server, ids)
            self.assertEqual(cached, 192)
            self.assertEqual(hit, miss)
            # Half of it, then other tokens: computed alone the answer is the same.
            other = ids[:100] + prompt(2, 60)
            partial, cached = ask(server, other)
            self.assertEqual(cached, 96)
            self.assertEqual(ask(server, other, cache_salt="alone"), (partial, 0))
            # The next turn finds the answer's blocks too: 24 tokens, the last of them not computed.
            turn = ids + [ord(c) for c in "next"]
            self.assertEqual(ask(server, turn)[1], 192)
            self.assertEqual(server.metric("vllm:prefix_cache_hits_total"), 192 + 96 + 192)

    def test_a_stream_tells_the_hit_in_its_usage(self):
        with self.serve() as server:
            ids = prompt(1, 100)
            for expected in (0, 96):
                stream = EventStream(server, COMPLETIONS, request(ids, stream_options={"include_usage": True}))
                usages = [chunk["usage"] for chunk in stream]
                stream.close()
                self.assertEqual(usages[-1]["prompt_tokens_details"]["cached_tokens"], expected)
                self.assertTrue(all(usage is None for usage in usages[:-1]))

    def test_salts_keep_requests_apart(self):
        with self.serve() as server:
            ids = prompt(1, 200)
            answers = set()
            for salt in ("a", "b", "a" * 1000, "\u00e9"):
                first, cached = ask(server, ids, cache_salt=salt)
                self.assertEqual(cached, 0, salt)
                again, cached = ask(server, ids, cache_salt=salt)
                self.assertEqual(cached, 192, salt)
                answers |= {str(first), str(again)}
            first, cached = ask(server, ids, cache_salt=None)
            self.assertEqual(cached, 0)
            self.assertEqual(answers, {str(first)})
            for wrong in (5, "", ["a"], True):
                status, answer = post(server, COMPLETIONS, request(ids, cache_salt=wrong))
                self.assertEqual((status, answer["error"]["param"]), (400, "cache_salt"), answer)

    def test_scored_prompts_bypass_the_cache(self):
        with self.serve() as server:
            ids = prompt(1, 100)
            ask(server, ids)
            scored, cached = ask(server, ids, echo=True)
            self.assertEqual(cached, 0)
            self.assertEqual(len(scored["logprobs"]["token_logprobs"]), 124)
            self.assertEqual(ask(server, ids, echo=True), (scored, 0))

    def test_a_reset_forgets_all(self):
        with self.serve("--api-key", "k") as server:
            auth = {"Authorization": "Bearer k"}
            self.assertEqual(post_bytes(server, "/reset_prefix_cache", "")[0], 401)
            ids = prompt(1, 200)
            ask(server, ids, auth)
            self.assertEqual(ask(server, ids, auth)[1], 192)
            status, told = post(server, "/reset_prefix_cache", {}, auth)
            self.assertEqual(status, 200)
            self.assertGreaterEqual(told["num_dropped_blocks"], 12)
            self.assertEqual(told["num_forgotten_blocks"], 0)
            self.assertEqual(ask(server, ids, auth)[1], 0)
            self.assertEqual(server.get("/reset_prefix_cache", auth)[0], 405)

    def test_preempted_requests_answer_as_if_alone(self):
        prompts = [prompt(i, 150) for i in range(6)]
        with self.serve("--context", "512") as server:
            alone = [ask(server, ids, max_tokens=200)[0] for ids in prompts]
        with self.serve("--context", "512", "--kv-memory", self.small_memory) as server:
            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                for _ in range(20):  # until they meet, on a busy machine
                    together = list(pool.map(lambda ids: ask(server, ids, max_tokens=200)[0], prompts))
                    self.assertEqual(together, alone)
                    if server.metric("vllm:num_preemptions_total") > 0:
                        break
            self.assertGreater(server.metric("vllm:num_preemptions_total"), 0)
            server.wait_metric("vllm:kv_cache_usage_perc", 0)
            self.assertEqual(server.metric("dunlin:kv_cache_waste_perc"), 0)

    def test_blocks_on_disk_survive_a_restart_and_change_no_bit(self):
        ids = prompt(1, 200)
        with tempfile.TemporaryDirectory() as folder:
            flags = ("--prefix-cache-dir", folder + "/cache")
            with self.serve(*flags) as server:
                miss, cached = ask(server, ids)
                self.assertEqual(cached, 0)
                salted = ask(server, ids, cache_salt="s")
                self.assertEqual(salted, (miss, 0))
                server.wait_metric("dunlin:prefix_disk_blocks_written_total", 2 * 13)
            with self.serve(*flags) as server:
                self.assertEqual(ask(server, ids), (miss, 192))
                self.assertEqual(server.metric("dunlin:prefix_disk_blocks_read_total"), 12)
                self.assertEqual(ask(server, ids, cache_salt="t"), (miss, 0))
                self.assertEqual(ask(server, ids, cache_salt="s"), (miss, 192))
                # A second server on the same folder reads what is there.
                with self.serve(*flags) as second:
                    self.assertEqual(ask(second, ids), (miss, 192))
                    self.assertIn("only reads", second.output())
            other = pathlib.Path(folder) / "other.gguf"
            subprocess.run([MAKE_TINY_MODEL, str(other), self.architecture, "F32", "2"], check=True)
            with RunningServer(DUNLIN, str(other), *flags) as server:
                self.assertEqual(ask(server, ids)[1], 0)

    def test_damaged_blocks_are_dropped_with_a_warning(self):
        ids = prompt(1, 200)
        with tempfile.TemporaryDirectory() as folder:
            with self.serve("--prefix-cache-dir", folder) as server:
                miss, _ = ask(server, ids)
                server.wait_metric("dunlin:prefix_disk_blocks_written_total", 13)
            for path in pathlib.Path(folder).rglob("*.kv"):
                data = bytearray(path.read_bytes())
                data[len(data) // 2] ^= 1
                path.write_bytes(data)
            with self.serve("--prefix-cache-dir", folder) as server:
                self.assertEqual(ask(server, ids), (miss, 0))
                self.assertIn("is dropped: its checksum is wrong", server.output())
                self.assertEqual(server.metric("dunlin:prefix_disk_blocks_bad_total"), 1)

    def test_a_reset_clears_the_disk(self):
        ids = prompt(1, 200)
        with tempfile.TemporaryDirectory() as folder:
            with self.serve("--prefix-cache-dir", folder) as server:
                ask(server, ids)
                server.wait_metric("dunlin:prefix_disk_blocks_written_total", 13)
                post(server, "/reset_prefix_cache", {})
                server.wait_metric("dunlin:prefix_disk_bytes", 0)
            with self.serve("--prefix-cache-dir", folder) as server:
                self.assertEqual(ask(server, ids)[1], 0)


class FullAttention(PrefixCache, unittest.TestCase):
    architecture = "llama"
    small_memory = "384K"  # 256 bytes a token: 1,536 tokens, 48 blocks, for six times 350


class SlidingWindows(PrefixCache, unittest.TestCase):
    architecture = "gemma3"
    small_memory = "200K"


class Refusals(unittest.TestCase):
    def refusal(self, *flags):
        command = [DUNLIN, "serve", model("llama"), "--port", "0", *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def test_a_folder_or_size_that_cant_work_is_refused_by_name(self):
        path = pathlib.Path(FOLDER.name) / "a-file"
        path.write_text("x")
        self.assertRegex(self.refusal("--prefix-cache-dir", str(path)), "--prefix-cache-dir.*a-file")
        small = self.refusal("--prefix-cache-dir", FOLDER.name + "/c", "--prefix-cache-disk-size", "1K")
        self.assertIn("give it more", small)
        self.assertIn("--prefix-cache-disk-size", self.refusal("--prefix-cache-disk-size", "much"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
