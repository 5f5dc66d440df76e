"""Time limits and limits of the queue, as a client sees them. Usage: time_limits_test.py DUNLIN MAKE_TINY_MODEL"""

import json
import sys
import threading
import unittest
import urllib.error
import urllib.request

from running_server import RunningServer
from tiny_model import tiny_model  # noqa: E402

DUNLIN, MAKE_TINY_MODEL = sys.argv[1:3]


def complete(server, **fields):
    """(status, headers, body) of a completion."""
    body = {"prompt": [5, 6, 7], "ignore_eos": True, "temperature": 0} | fields
    request = urllib.request.Request(
        server.url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, error.headers, json.load(error)


class TimeLimits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = tiny_model(cls, MAKE_TINY_MODEL)

    def test_a_deadline_ends_an_answer_with_what_there_is(self):
        with RunningServer(DUNLIN, self.model, "--preset", "chat") as server:
            status, _, whole = complete(server, max_tokens=1900)
            self.assertEqual(status, 200)
            status, _, cut = complete(server, max_tokens=1900, deadline_ms=5)
            if status == 200:
                choice = cut["choices"][0]
                self.assertEqual(choice["finish_reason"], "length")
                self.assertTrue(whole["choices"][0]["text"].startswith(choice["text"].rstrip("\ufffd")))
            else:
                self.assertEqual((status, cut["error"]["code"]), (503, "deadline_exceeded"))

    def test_who_waits_too_long_is_told_so(self):
        with RunningServer(DUNLIN, self.model, "--max-seqs", "1") as server:
            stop = threading.Event()

            def keep_busy():
                while not stop.is_set():
                    complete(server, max_tokens=1900)

            busy = [threading.Thread(target=keep_busy) for _ in range(3)]
            for thread in busy:
                thread.start()
            try:
                refused = None
                for _ in range(200):
                    status, headers, body = complete(server, max_tokens=1, queue_timeout_ms=1)
                    if status != 200:
                        refused = (status, headers["Retry-After"], body["error"]["code"])
                        break
                self.assertEqual(refused, (503, "1", "queue_timeout"))
            finally:
                stop.set()
                for thread in busy:
                    thread.join(60)

    def test_more_choices_than_the_queue_takes_can_never_fit(self):
        with RunningServer(DUNLIN, self.model, "--max-queue", "4") as server:
            status, _, body = complete(server, max_tokens=1, n=5)
            self.assertEqual((status, body["error"]["param"]), (400, "n"))
            self.assertIn("the queue takes 4", body["error"]["message"])
            status, _, body = complete(server, max_tokens=3, n=4)
            self.assertEqual(status, 200)
            self.assertEqual(len({choice["text"] for choice in body["choices"]}), 1)
            self.assertEqual(body["usage"]["completion_tokens"], 12)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
