"""What `dunlin serve` does as a process: signals, exit codes, a taken port, bad files, crowds
that leave, idle CPU.

usage: serve_process_test.py DUNLIN MAKE_TINY_MODEL"""

import concurrent.futures
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from api_client import EventStream, post
from running_server import RunningServer

CHAT = "/v1/chat/completions"
LONG = {"messages": [{"role": "user", "content": "go"}], "max_tokens": 1500, "ignore_eos": True}


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start_answer(server, body):
    """A thread whose answer was seen running, and the list that the answer goes to."""
    for _ in range(20):  # a short answer may be over before a look at the metrics
        answers = []
        asking = threading.Thread(target=lambda: answers.append(post(server, CHAT, body)))
        asking.start()
        while asking.is_alive():
            if server.metric("vllm:num_requests_running") == 1:
                return asking, answers
        asking.join()
    raise AssertionError("no answer was seen running")


def check_finishes_what_runs(dunlin, model, number):
    with RunningServer(dunlin, model) as server:
        asking, answers = start_answer(server, LONG | {"max_tokens": 300})
        server.process.send_signal(number)
        asking.join()
        assert answers[0][0] == 200 and answers[0][1]["usage"]["completion_tokens"] == 300, answers
        assert server.process.wait(20) == 0, server.process.returncode


def check_second_signal(dunlin, model):
    with RunningServer(dunlin, model) as server:
        stream = EventStream(server, CHAT, LONG | {"n": 8})
        next(iter(stream))
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        begin = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait(20)
        assert code == 128 + signal.SIGTERM, code
        assert time.monotonic() - begin < 2, "a second signal did not stop it at once"
        stream.close()


def check_grace(dunlin, model):
    with RunningServer(dunlin, model, "--grace", "1") as server:
        stream = EventStream(server, CHAT, LONG | {"n": 8})
        next(iter(stream))
        begin = time.monotonic()
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(20) == 0, server.process.returncode
        assert time.monotonic() - begin < 6
        stream.close()


def check_taken_port(dunlin, model):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        done = subprocess.run([dunlin, "serve", model, "--port", str(port)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1, done
        assert f"process {os.getpid()}" in done.stderr and "--port" in done.stderr, done.stderr


def check_bad_files(dunlin, model, folder):
    cut = folder / "cut.gguf"
    data = pathlib.Path(model).read_bytes()
    cut.write_bytes(data[:len(data) - 1000])
    for path in (str(cut), str(folder / "missing.gguf"), str(folder)):
        done = subprocess.run([dunlin, "serve", path, "--port", "0"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1, (path, done)
        assert done.stderr.count("\n") == 1 and pathlib.Path(path).name in done.stderr, done.stderr


def check_idle(dunlin, model):
    with RunningServer(dunlin, model) as server:
        post(server, CHAT, LONG | {"max_tokens": 5})
        time.sleep(0.5)
        before = cpu_seconds(server.process.pid)
        time.sleep(10)
        used = cpu_seconds(server.process.pid) - before
        assert used <= 0.01, f"an idle server used {used * 1000:.0f} ms in 10 s"


def check_thousand_leave(dunlin, model):
    """Case d3: each request is closed at a random moment up to its 20th delta; no block stays held."""
    with RunningServer(dunlin, model) as server:
        source = random.Random(3)
        moments = [(source.choice([1, 3]), source.randrange(21)) for _ in range(1000)]

        def leave(moment):
            stream = EventStream(server, CHAT, LONG | {"n": moment[0]})
            for _ in zip(range(moment[1]), stream):
                pass
            stream.close()

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(leave, moments))
        for gauge in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"):
            server.wait_metric("vllm:" + gauge, 0)
        status, answer = post(server, CHAT, LONG)
        assert status == 200 and answer["usage"]["completion_tokens"] == 1500, answer


def check_environment(dunlin, model):
    flags = {"DUNLIN_API_KEY": "k", "DUNLIN_CONTEXT": "256", "DUNLIN_MODEL_NAME": "from-env"}
    with RunningServer(dunlin, model, env=flags) as server:
        assert server.get("/v1/models")[0] == 401
        status, body = server.get("/v1/models", {"Authorization": "Bearer k"})
        assert status == 200 and '"max_model_len":256' in body and "from-env" in body, body


def main():
    dunlin, make_tiny_model = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = str(folder / "tiny.gguf")
        subprocess.run([make_tiny_model, model], check=True)
        check_finishes_what_runs(dunlin, model, signal.SIGTERM)
        check_finishes_what_runs(dunlin, model, signal.SIGINT)
        check_second_signal(dunlin, model)
        check_grace(dunlin, model)
        check_taken_port(dunlin, model)
        check_bad_files(dunlin, model, folder)
        check_environment(dunlin, model)
        check_thousand_leave(dunlin, model)
        check_idle(dunlin, model)
    print("every check passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
