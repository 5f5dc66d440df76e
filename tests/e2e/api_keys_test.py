"""Several API keys on one server: who is let in, and that each key gets its share of the tokens however many clients
it has. Usage: api_keys_test.py DUNLIN MAKE_TINY_MODEL"""

import os
import subprocess
import sys
import threading
import unittest

from api_client import post
from running_server import RunningServer
from tiny_model import tiny_model  # noqa: E402

DUNLIN, MAKE_TINY_MODEL = sys.argv[1:3]
ONE, THIRTY = "key-of-the-one", "key-of-the-thirty"


class ApiKeys(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = tiny_model(cls, MAKE_TINY_MODEL)
        cls.keys = os.path.join(os.path.dirname(cls.model), "keys")
        with open(cls.keys, "w") as file:
            file.write(f"# two keys\none {ONE}\nthirty {THIRTY} 1\n")
        os.chmod(cls.keys, 0o600)

    def complete(self, server, key, prompt):
        body = {"prompt": prompt, "max_tokens": 800, "ignore_eos": True}
        status, answer = post(server, "/v1/completions", body, {"Authorization": f"Bearer {key}"})
        self.assertEqual(status, 200, answer)
        return answer["usage"]["total_tokens"]

    def test_a_key_that_is_not_in_the_file_is_refused(self):
        with RunningServer(DUNLIN, self.model, "--api-keys", self.keys) as server:
            self.assertEqual(server.get("/v1/models")[0], 401)
            self.assertEqual(server.get("/v1/models", {"Authorization": "Bearer key-of-nobody"})[0], 401)
            for key in (ONE, THIRTY):
                self.assertEqual(server.get("/v1/models", {"Authorization": f"Bearer {key}"})[0], 200)
            self.assertNotIn(ONE, server.output())

    def test_one_client_gets_as_much_as_thirty(self):
        served = {ONE: 0, THIRTY: 0}
        lock, stop = threading.Lock(), threading.Event()

        def client(server, key, number):
            for turn in range(10000):
                if stop.is_set():
                    return
                tokens = self.complete(server, key, [number % 50 + 5, turn % 50 + 5] * 10)
                with lock:
                    if not stop.is_set():
                        served[key] += tokens
                        if sum(served.values()) > 120000:
                            stop.set()

        with RunningServer(DUNLIN, self.model, "--api-keys", self.keys, "--max-seqs", "2") as server:
            threads = [threading.Thread(target=client, args=(server, THIRTY, i)) for i in range(30)]
            threads.append(threading.Thread(target=client, args=(server, ONE, 30)))
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(120)
        share = served[ONE] / sum(served.values())
        self.assertGreater(share, 0.4, served)
        self.assertLess(share, 0.6, served)

    def test_a_broken_file_is_told_with_its_line(self):
        broken = os.path.join(os.path.dirname(self.model), "broken")
        with open(broken, "w") as file:
            file.write("one 12345678\nonly-a-name\n")
        os.chmod(broken, 0o600)
        ended = subprocess.run(
            [DUNLIN, "serve", self.model, "--port", "0", "--api-keys", broken], capture_output=True, text=True, timeout=60
        )
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("line 2", ended.stderr)
        self.assertNotIn("12345678", ended.stderr)
        os.chmod(broken, 0o644)
        ended = subprocess.run(
            [DUNLIN, "serve", self.model, "--port", "0", "--api-keys", broken], capture_output=True, text=True, timeout=60
        )
        self.assertIn("chmod o-rw", ended.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
