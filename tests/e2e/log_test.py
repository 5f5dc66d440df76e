"""The log of `dunlin serve` as a process: a line a request, in both forms, and a log that nobody reads.

usage: log_test.py DUNLIN MAKE_TINY_MODEL"""

import http.client
import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from api_client import post, post_bytes  # noqa: E402
from running_server import RunningServer  # noqa: E402
from tiny_model import tiny_model  # noqa: E402

DUNLIN, MAKE_TINY_MODEL = sys.argv[1:3]
CHAT = "/v1/chat/completions"
ASK = {"messages": [{"role": "user", "content": "zebra"}], "max_tokens": 5, "ignore_eos": True}


class Log(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = tiny_model(cls, MAKE_TINY_MODEL)

    def test_json_has_an_object_a_line_and_nothing_else(self):
        with RunningServer(DUNLIN, self.model, "--log-format", "json", "--api-key", "secret-key") as server:
            key = {"Authorization": "Bearer secret-key", "X-Request-Id": "mine-1"}
            self.assertEqual(post_bytes(server, CHAT, json.dumps(ASK), key)[0], 200)
            self.assertEqual(post_bytes(server, CHAT, json.dumps(ASK), key)[0], 200)
            self.assertEqual(post_bytes(server, CHAT, json.dumps(ASK))[0], 401)
            text = server.wait_output(r'"status":401.*\n')
        for secret in ("zebra", "secret-key"):
            self.assertNotIn(secret, text)
        lines = [json.loads(line) for line in text.splitlines()]
        events = [line["event"] for line in lines]
        self.assertEqual(events.count("listening"), 1)
        requests = [line for line in lines if line["event"] == "request"]
        self.assertEqual([line["status"] for line in requests], [200, 200, 401])
        first, again = requests[:2]
        self.assertEqual(first["request_id"], "mine-1")
        self.assertEqual((first["output_tokens"], first["finish_reason"], first["chunks"]), (5, "length", 1))
        self.assertEqual((first["cached_tokens"], again["prompt_tokens"]), (0, first["prompt_tokens"]))
        self.assertGreater(first["total_time_s"], first["first_token_time_s"])
        self.assertGreaterEqual(first["first_token_time_s"], first["queue_time_s"])

    def test_text_has_a_line_a_request(self):
        with RunningServer(DUNLIN, self.model, env={"DUNLIN_LOG_REQUESTS": "all"}) as server:
            self.assertEqual(post(server, CHAT, ASK)[0], 200)
            text = server.wait_output(
                rf"(?m)^\S+Z POST {CHAT} 200 \S+ s length prompt=\d+ cached=0 output=5 queue=\S+ .* id=req-\w+$")
        self.assertRegex(text, r"(?m)^\S+Z GET /health 200 ")

    def test_a_log_that_nobody_reads_stops_nothing(self):
        with RunningServer(DUNLIN, self.model, env={"DUNLIN_LOG_REQUESTS": "all"}) as server:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            for _ in range(2000):  # more lines than a pipe holds
                connection.request("GET", "/health", headers={"X-Request-Id": "x" * 128})
                self.assertEqual(connection.getresponse().read(), b'{"status":"ok"}')
            connection.close()
            self.assertGreater(len(server.output().splitlines()), 100)
            server.get("/health")
            server.wait_output(r"\d+ lines of the log were dropped")

    def test_every_answer_has_a_request_id(self):
        with RunningServer(DUNLIN, self.model) as server:
            for path, body in (("/nowhere", None), ("/health", None), (CHAT, "{"), (CHAT, json.dumps(ASK))):
                for given, back in (("{a}/b", re.escape("{a}/b")), ("two words", "req-.+"), ("y" * 129, "req-.+")):
                    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
                    connection.request("POST" if body else "GET", path, body, {"X-Request-Id": given})
                    self.assertRegex(connection.getresponse().headers["X-Request-Id"], f"^{back}$")
                    connection.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
