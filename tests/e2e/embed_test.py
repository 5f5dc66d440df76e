"""`dunlin embed` and POST /v1/embeddings: an encoder from a folder and as GGUF, a model that generates, alone and among
answers.

usage: embed_test.py PATH_TO_DUNLIN PATH_TO_TESTS MAKE_TINY_MODEL"""

import concurrent.futures
import json
import math
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

from api_client import post
from running_server import RunningServer

DUNLIN, TESTS, MAKE_TINY_MODEL = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
PATH = "/v1/embeddings"


def dunlin(*arguments, text_in=None):
    return subprocess.run([DUNLIN, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False,
                          input=text_in)


def cosine(a, b):
    product = lambda x, y: sum(p * q for p, q in zip(x, y, strict=True))
    return product(a, b) / math.sqrt(product(a, a) * product(b, b))


class EmbedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        with tarfile.open(TESTS / "golden" / "embeddings.tar.xz") as archive:
            archive.extractall(cls.folder)
        cls.model = cls.folder / "embeddings" / "tiny-bert"
        cls.golden = json.loads((cls.model / "reference.json").read_text())
        cls.texts = [entry["text"] for entry in cls.golden]

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def embed(self, model, *arguments, text_in=None):
        done = dunlin("embed", model, *arguments, "--output", "json", text_in=text_in)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [entry["embedding"] for entry in json.loads(done.stdout)["data"]]

    def refuse(self, *arguments, saying):
        done = dunlin(*arguments)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for words in saying:
            self.assertIn(words, done.stderr)

    def test_texts_become_the_references_vectors(self):
        for vector, entry in zip(self.embed(self.model, *self.texts), self.golden, strict=True):
            self.assertGreater(cosine(vector, entry["embedding"]), 0.99999, entry["text"])
            self.assertAlmostEqual(sum(x * x for x in vector), 1, places=4)

    def test_a_line_of_standard_input_is_a_text(self):
        piped = self.embed(self.model, text_in="The cat sat on the mat.\nx\n")
        self.assertEqual(piped, self.embed(self.model, "The cat sat on the mat.", "x"))
        plain = dunlin("embed", self.model, text_in="x\n")
        self.assertEqual([float(x) for x in plain.stdout.split()], piped[1])

    def test_a_gguf_file_gives_the_folders_vectors(self):
        path = self.folder / "tiny-bert.gguf"
        converted = dunlin("convert", self.model, path)
        self.assertEqual(converted.returncode, 0, converted.stderr)
        self.assertEqual(self.embed(path, *self.texts), self.embed(self.model, *self.texts))

    def test_dimensions_pooling_and_length(self):
        [whole] = self.embed(self.model, "x", "--no-normalize")
        [cut] = self.embed(self.model, "x", "--dimensions", 5)
        self.assertEqual(len(cut), 5)
        self.assertGreater(cosine(cut, whole[:5]), 0.999999)
        [first] = self.embed(self.model, "x", "--pooling", "cls")
        self.assertGreater(cosine(first, self.golden[4]["hidden"]["0"]), 0.99999)
        self.refuse("embed", self.model, "x", "--dimensions", 49, saying=["49", "48"])

    def test_texts_that_cannot_be_embedded(self):
        self.refuse("embed", self.model, "x", "", saying=["text 2", "empty"])
        self.refuse("embed", self.model, "cat " * 400, saying=["402 tokens", "310", "--truncate"])
        self.assertEqual(len(self.embed(self.model, "cat " * 400, "--truncate")), 1)

    def test_commands_that_want_text_from_an_encoder_say_what_it_is(self):
        self.refuse("run", self.model, "hi", saying=["embedding model", "dunlin embed"])
        self.refuse("bench", self.model, saying=["embedding model"])
        self.refuse("debug", "logits", "--model", self.model, saying=["dunlin embed"])
        shown = dunlin("inspect", self.model)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("embedding model", shown.stdout)
        self.assertIn("48 numbers, pooling mean", shown.stdout)

    def test_a_server_of_an_encoder(self):
        with RunningServer(DUNLIN, str(self.model)) as server:
            status, answer = post(server, PATH, {"input": self.texts})
            self.assertEqual(status, 200, answer)
            self.assertEqual([entry["index"] for entry in answer["data"]], list(range(len(self.texts))))
            self.assertEqual([entry["embedding"] for entry in answer["data"]], self.embed(self.model, *self.texts))
            self.assertEqual(answer["usage"]["total_tokens"], sum(len(entry["ids"]) for entry in self.golden))
            for path, body in [("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
                               ("/v1/completions", {"prompt": "hi"})]:
                status, answer = post(server, path, body)
                self.assertEqual(status, 400)
                self.assertIn("/v1/embeddings", answer["error"]["message"])
            status, answer = post(server, PATH, {"input": ["x", "cat " * 400]})
            self.assertEqual((status, answer["error"]["param"]), (400, "input[1]"))
            self.assertIn("402", answer["error"]["message"])
            self.assertEqual(server.get("/v1/models")[0], 200)
            self.assertEqual(server.metric("vllm:num_requests_running"), 0)

    def test_a_model_that_generates_embeds_among_its_answers(self):
        model = self.folder / "tiny.gguf"
        subprocess.run([MAKE_TINY_MODEL, str(model)], check=True)
        texts = [f"number {i} " * (3 + 7 * i) for i in range(6)]
        alone = {pooling: self.embed(model, *texts, "--pooling", pooling) for pooling in ("mean", "last")}
        with RunningServer(DUNLIN, str(model)) as server, concurrent.futures.ThreadPoolExecutor(16) as pool:
            chats = [pool.submit(post, server, "/v1/completions", {"prompt": f"{i}", "max_tokens": 60, "ignore_eos": True})
                     for i in range(4)]
            answers = {pooling: [pool.submit(post, server, PATH, {"input": text, "pooling": pooling}) for text in texts]
                       for pooling in alone}
            for pooling, wanted in alone.items():
                got = [future.result()[1]["data"][0]["embedding"] for future in answers[pooling]]
                self.assertEqual(got, wanted)
            self.assertEqual([chat.result()[0] for chat in chats], [200] * 4)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
