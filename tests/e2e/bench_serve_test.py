"""`dunlin bench serve`: what it counts against a real server, and that servers that misbehave become counts of
failures.

usage: bench_serve_test.py DUNLIN MAKE_TINY_MODEL"""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from running_server import RunningServer, free_port
from tiny_model import tiny_model  # noqa: E402

DUNLIN, MAKE_TINY_MODEL = sys.argv[1], sys.argv[2]
CHUNK = b'data: {"choices":[{"index":0,"text":"a","finish_reason":null}]}\n\n'
END = (b'data: {"choices":[{"index":0,"text":"","finish_reason":"length"}]}\n\n'
       b'data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3}}\n\ndata: [DONE]\n\n')
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def whole(status, body):
    return (f"HTTP/1.1 {status} Some\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n").encode() + body


class ScriptedServer:
    """Lists a model, and answers each POST with behaviour(connection, how many came before)."""

    def __init__(self, behaviour):
        self.behaviour, self.count, self.bodies, self.lock = behaviour, 0, [], threading.Lock()

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.listener.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.answer, args=(self.listener.accept()[0],), daemon=True).start()

    def answer(self, connection):
        with contextlib.suppress(OSError), connection:
            connection.settimeout(30)
            data = b""
            while b"\r\n\r\n" not in data:
                data += connection.recv(65536)
            head, body = data.split(b"\r\n\r\n", 1)
            if head.startswith(b"GET"):
                connection.sendall(whole(200, b'{"data":[{"id":"m"}]}'))
                return
            length = int(re.search(rb"Content-Length: (\d+)", head)[1])
            while len(body) < length:
                body += connection.recv(65536)
            with self.lock:
                index, self.count = self.count, self.count + 1
                self.bodies.append(json.loads(body))
            self.behaviour(connection, index)


def good(connection, _index=0):
    connection.sendall(HEAD + CHUNK)
    connection.sendall(CHUNK + CHUNK + END)


def bench(*arguments, timeout=120):
    return subprocess.run([DUNLIN, "bench", "serve", *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=timeout, env=os.environ | {"http_proxy": "http://127.0.0.1:1"})


def report(url, *arguments):
    """The JSON of a run that ended, whatever its exit code."""
    done = bench("--url", url, "--output", "json", *arguments)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


class Misbehaving(unittest.TestCase):
    def failures(self, behaviour, *arguments):
        """What becomes of six requests of which every other is served by `behaviour`."""
        def alternate(connection, index):
            good(connection) if index % 2 == 0 else behaviour(connection)

        with ScriptedServer(alternate) as server:
            found = report(server.url, "-n", "6", "--concurrency", "1", "--warmup", "0", "--prompt-format", "text",
                           *arguments)
        self.assertEqual((found["completed"], found["failed"]), (3, 3), found)
        self.assertEqual(found["total_output_tokens"], 9)
        return found["failures"]

    def test_kinds_of_failures(self):
        def send(data):
            return lambda connection: connection.sendall(data)

        for kind, behaviour in (
                ("closed early", send(b"")), ("closed early", send(HEAD + CHUNK)),
                ("closed early", send(HEAD.replace(b"Connection", b"Content-Length: 9999\r\nConnection") + CHUNK)),
                ("HTTP 429", send(whole(429, b'{"error":{"message":"later"}}'))),
                ("HTTP status", send(whole(500, b"x" * 100_000))), ("HTTP status", send(whole(404, b""))),
                ("bad answer", send(whole(200, b'{"choices":[]}'))), ("bad answer", send(HEAD + b"data: {\n\n" + END)),
                ("bad answer", send(HEAD + b"data: " + b"[" * 300_000 + b"\n\n")),
                ("bad answer", send(b"this is no HTTP\r\n\r\n")),
                ("server error", send(HEAD + b'data: {"error":{"message":"no memory"}}\n\n' + END))):
            with self.subTest(kind):
                self.assertEqual(self.failures(behaviour), {kind: 3})

    def test_servers_that_hang(self):
        for data in (b"", b"HTTP/1.1 200 OK\r\n", HEAD + CHUNK):
            def hang(connection, data=data):
                connection.sendall(data)
                connection.recv(1)  # until the client leaves

            with self.subTest(data):
                self.assertEqual(self.failures(hang, "--timeout", "0.5"), {"timeout": 3})

    def test_a_server_that_is_not_there(self):
        done = bench("--url", f"http://127.0.0.1:{free_port()}")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"does not answer .*--url")

    def test_a_server_that_goes_away(self):
        def go_away(connection, _index):
            server.listener.shutdown(socket.SHUT_RDWR)
            good(connection)

        with ScriptedServer(go_away) as server:
            found = report(server.url, "-n", "3", "--concurrency", "1", "--warmup", "0", "--prompt-format", "text")
        self.assertEqual((found["completed"], found["failures"]), (1, {"no connection": 2}))

    def test_a_warm_up_that_fails_says_why(self):
        with ScriptedServer(lambda connection, _: connection.sendall(whole(400, b'{"error":"too long"}'))) as server:
            done = bench("--url", server.url, "--prompt-format", "text")
        self.assertEqual(done.returncode, 1)
        self.assertIn("400: 'too long'", done.stderr)

    def test_without_usage_pieces_are_counted(self):
        answer = HEAD + CHUNK + CHUNK + b"data: [DONE]\n\n"
        with ScriptedServer(lambda connection, _: connection.sendall(answer)) as server:
            found = report(server.url, "-n", "2", "--input-len", "7", "--prompt-format", "text")
        self.assertEqual((found["total_input_tokens"], found["total_output_tokens"]), (14, 4))
        self.assertEqual(found["without_usage"], 2)

    def test_ctrl_c_prints_what_there_is(self):
        def hang_later(connection, index):
            if index < 2:
                good(connection)
            else:
                connection.sendall(HEAD + CHUNK)
                connection.recv(1)

        with ScriptedServer(hang_later) as server:
            process = subprocess.Popen(
                [DUNLIN, "bench", "serve", "--url", server.url, "-n", "4", "--concurrency", "2", "--warmup", "0",
                 "--prompt-format", "text", "--output", "json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + 30
            while server.count < 4 and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            found = json.loads(process.communicate(timeout=30)[0])
        self.assertEqual(process.returncode, 130)
        self.assertTrue(found["interrupted"])
        self.assertEqual((found["completed"], found["failures"]), (2, {"interrupted": 2}))

    def test_a_poisson_process_keeps_its_rate(self):
        with ScriptedServer(good) as server:
            found = report(server.url, "-n", "40", "--request-rate", "100", "--records", "--prompt-format", "text")
        starts = [request["start_s"] for request in found["requests"]]
        self.assertEqual(starts, sorted(starts))
        self.assertGreaterEqual(starts[-1], 0.2)  # the seed's times, whatever the machine is busy with
        self.assertEqual(found["completed"], 40)


class AgainstDunlin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = tiny_model(cls, MAKE_TINY_MODEL)
        template = "{% for m in messages %}{{ m.content }}{% endfor %}"
        cls.server = RunningServer(DUNLIN, cls.model, "--api-key", "k", "--chat-template", template, "--context", "2048")
        cls.server.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def report(self, *arguments):
        return report(self.server.url, "--api-key", "k", "--ignore-eos", *arguments)

    def test_ids_give_exact_counts(self):
        found = self.report("-n", "30", "--concurrency", "8", "--input-len", "5:40", "--output-len", "1:20", "--records")
        self.assertEqual((found["completed"], found["failed"], found["prompt_format"]), (30, 0, "token ids"))
        requests = found["requests"]
        self.assertEqual(sum(request["input_tokens"] for request in requests), found["total_input_tokens"])
        self.assertTrue(all(5 <= request["input_tokens"] <= 41 for request in requests))
        self.assertTrue(all(1 <= request["output_tokens"] <= 20 for request in requests))
        self.assertLessEqual(found["max_concurrent_requests"], 8)
        self.assertLessEqual(found["median_ttft_ms"], found["p99_ttft_ms"])
        again = self.report("-n", "30", "--concurrency", "8", "--input-len", "5:40", "--output-len", "1:20")
        for count in ("total_input_tokens", "total_output_tokens"):
            self.assertEqual(found[count], again[count])

    def test_a_shared_prefix_is_cached(self):
        found = self.report("-n", "8", "--concurrency", "1", "--workload", "shared-prefix", "--prefix-len", "160",
                            "--input-len", "8", "--output-len", "2", "--seed", "5")
        self.assertEqual((found["completed"], found["total_input_tokens"]), (8, 8 * 168))
        self.assertGreaterEqual(found["total_cached_tokens"], 7 * 144)

    def test_chats(self):
        found = self.report("--endpoint", "chat", "-n", "6", "--input-len", "10", "--output-len", "4")
        self.assertEqual((found["completed"], found["total_output_tokens"], found["prompt_format"]), (6, 24, "text"))

    def test_a_trace_is_replayed(self):
        trace = pathlib.Path(self.model).with_name("trace.jsonl")
        trace.write_text("".join(json.dumps(line) + "\n" for line in (
            {"arrival_s": 0, "prompt": "hello", "max_tokens": 3}, {"arrival_s": 4, "prompt": [70, 71], "max_tokens": 5},
            {"arrival_s": 8, "prompt_len": 9, "max_tokens": 2})))
        found = self.report("--workload", "replay", "--dataset", str(trace), "--speed", "20", "--records")
        self.assertEqual((found["num_prompts"], found["completed"], found["total_output_tokens"]), (3, 3, 10))
        self.assertGreaterEqual(found["requests"][2]["start_s"], 0.4)

    def test_clients_that_leave(self):
        found = self.report("-n", "60", "--concurrency", "20", "--leave", "0.5", "--input-len", "8", "--output-len",
                            "200:400")
        left = found["failures"]["client left"]
        self.assertEqual((found["completed"] + left, found["failed"]), (60, 0), found)
        self.assertGreater(left, 0)  # an answer may be whole before its client's time has come
        for gauge in ("num_requests_running", "num_requests_waiting"):
            while self.metric("vllm:" + gauge) != 0:
                time.sleep(0.01)

    def metric(self, name):
        text = self.server.get("/metrics", {"Authorization": "Bearer k"})[1]
        return float([line for line in text.splitlines() if line.startswith(name)][0].split()[-1])

    def test_the_block_and_a_file(self):
        path = pathlib.Path(self.model).with_name("run.json")
        done = bench("--url", self.server.url + "/v1/", "--api-key", "k", "-n", "3", "--input-len", "4", "--output-len",
                     "2", "--goodput", "ttft:100000", "tpot:100000", "--save", str(path))
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("Serving Benchmark Result", "Successful requests:                     3", "Request goodput",
                      "P99 TTFT (ms):", "Median ITL (ms):", "Mean TPOT (ms):"):
            self.assertIn(words, done.stdout)
        self.assertEqual(json.loads(path.read_text())["completed"], 3)

    def test_a_missing_key(self):
        done = bench("--url", self.server.url)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--api-key", done.stderr)


class Offline(unittest.TestCase):
    """`bench throughput` and `bench latency`: the engine in the same process."""

    @classmethod
    def setUpClass(cls):
        cls.model = tiny_model(cls, MAKE_TINY_MODEL)

    def run_bench(self, *arguments):
        return subprocess.run([DUNLIN, "bench", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=120)

    def test_throughput_counts_every_token(self):
        flags = ("-n", "12", "--input-len", "5", "--output-len", "7", "--max-seqs", "4")
        done = self.run_bench("throughput", self.model, *flags, "--output", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual((found["num_requests"], found["total_input_tokens"], found["total_output_tokens"]), (12, 60, 84))
        self.assertAlmostEqual(found["tokens_per_second"] * found["elapsed_time"], 144, places=3)
        self.assertRegex(self.run_bench("throughput", self.model, *flags).stdout,
                         r"Throughput: [\d.]+ requests/s, [\d.]+ total tokens/s, [\d.]+ output tokens/s\n")

    def test_throughput_of_a_dataset(self):
        trace = pathlib.Path(self.model).with_name("trace.jsonl")
        trace.write_text('{"prompt": "hello", "max_tokens": 3}\n{"prompt": [70, 71], "max_tokens": 5}\n')
        done = self.run_bench("throughput", self.model, "--workload", "replay", "--dataset", str(trace), "-o", "json")
        self.assertEqual(json.loads(done.stdout)["total_output_tokens"], 8, done.stderr)

    def test_latency(self):
        flags = ("--batch-size", "3", "--input-len", "4", "--output-len", "5", "--num-iters-warmup", "1", "--num-iters", "4")
        found = json.loads(self.run_bench("latency", self.model, *flags, "-o", "json").stdout)
        self.assertEqual(len(found["latencies"]), 4)
        self.assertAlmostEqual(found["avg_latency"], sum(found["latencies"]) / 4)
        self.assertEqual(sorted(found["percentiles"].values()), list(found["percentiles"].values()))
        text = self.run_bench("latency", self.model, *flags).stdout
        self.assertRegex(text, r"Avg latency: [\d.]+ seconds\n10% percentile latency: ")

    def test_what_does_not_fit_is_said(self):
        done = self.run_bench("throughput", self.model, "-n", "2", "--input-len", "500", "--context", "128")
        self.assertEqual(done.returncode, 1)
        self.assertIn("128", done.stderr)


class WrongFlags(unittest.TestCase):
    def test_are_named(self):
        for arguments, code, words in (
                (["--workload", "nothing"], 2, "--workload"), (["--request-rate", "0"], 2, "--request-rate"),
                (["--request-rate", "-1"], 2, "--request-rate"), (["--concurrency", "0"], 2, "--concurrency"),
                (["--leave", "2"], 2, "--leave"), (["-n", "0"], 2, "--num-requests"), (["surplus"], 2, "surplus"),
                (["--input-len", "9:3"], 1, "--input-len: '9:3' is no length"),
                (["--output-len", "x"], 1, "--output-len: 'x' is no length"),
                (["--workload", "replay"], 1, "--dataset"), (["--dataset", "x"], 1, "--dataset"),
                (["--goodput", "ttft"], 1, "--goodput: 'ttft'"), (["--extra-body", "[]"], 1, "--extra-body"),
                (["--url", "ftp://a"], 1, "ftp://a")):
            with self.subTest(arguments):
                done = bench(*arguments)
                self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
                self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
