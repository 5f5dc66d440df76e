"""Resident memory of a server against what it planned: at rest, and while mixed requests fill the
KV cache, come, stream and leave.

usage: memory_test.py DUNLIN MODEL MEMORY SECONDS
MODEL: a model's file, or the program that makes a tiny one."""

import concurrent.futures
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from api_client import EventStream, post  # noqa: E402
from running_server import RunningServer  # noqa: E402

COMPLETIONS = "/v1/completions"
TOLERANCE = 0.05


def resident_bytes(server):
    pages = int(pathlib.Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * 4096


def plan_of(server):
    lines = server.wait_output(r'"event":"memory".*\n').splitlines()
    return next(event for event in map(json.loads, lines) if event["event"] == "memory")


def request_body(source):
    length = source.choice([3, 40, 200, 700, 1400])
    return {
        "prompt": [source.randrange(1, 250) for _ in range(length)],
        "max_tokens": source.choice([1, 8, 30]),
        "n": source.choice([1, 1, 1, 4]),
        "logprobs": source.choice([None, None, 3]),
        "temperature": source.choice([0, 1]),
        "ignore_eos": True,
    }


def run_client(server, seed, deadline):
    source = random.Random(seed)
    num_tokens = 0
    while time.monotonic() < deadline:
        body = request_body(source)
        if source.random() < 0.3:
            stream = EventStream(server, COMPLETIONS, body)
            for _ in zip(range(source.randrange(20)), stream):
                pass
            stream.close()
            continue
        status, answer = post(server, COMPLETIONS, body)
        assert status in (200, 429), answer
        if status == 200:
            num_tokens += answer["usage"]["total_tokens"]
    return num_tokens


def check(dunlin, model, memory, seconds):
    flags = ("--memory", memory, "--log-format", "json", "--log-requests", "none", "--context", "2048",
             "--max-seqs", "16")
    with RunningServer(dunlin, model, *flags) as server:
        told = plan_of(server)
        plan, planned = told["memory"], told["memory"]["total"]
        assert planned <= told["budget"], told
        assert planned == server.metric_sum("dunlin:memory_planned_bytes"), told
        rest = resident_bytes(server)
        print(f"planned {planned / 1e6:.1f} MB, KV cache {plan['kv_cache'] / 1e6:.1f}; at rest {rest / 1e6:.1f}")
        assert rest <= planned * (1 + TOLERANCE), "more than planned before the first request"

        deadline = time.monotonic() + seconds
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            clients = [pool.submit(run_client, server, seed, deadline) for seed in range(8)]
            most = 0
            while time.monotonic() < deadline:
                most = max(most, resident_bytes(server))
                time.sleep(0.2)
            num_tokens = sum(client.result() for client in clients)
        server.wait_metric("vllm:num_requests_running", 0)
        after = resident_bytes(server)
        cache_tokens = plan["kv_cache"] / told["kv_bytes_per_token"]
        surely_used = planned - plan["scratch"]  # the largest step may not have come
        print(f"{num_tokens} tokens through a cache of {cache_tokens:.0f}: at most {most / 1e6:.1f} MB, then {after / 1e6:.1f}")
        assert most <= planned * (1 + TOLERANCE), "more than planned under load"
        if num_tokens > 2 * cache_tokens:
            assert after >= surely_used * (1 - TOLERANCE), "the plan is too large: the cache is full, and much is left"


def check_too_small(dunlin, model):
    """Refused in a line with the numbers, before the weights are read."""
    for flags in (["--memory", "16M"], ["--memory", "64M", "--kv-memory", "60M"]):
        done = subprocess.run([dunlin, "serve", model, "--port", "0", *flags], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1, done
        assert done.stderr.count("\n") == 1, done.stderr
        for words in (pathlib.Path(model).name, "--memory", "MiB"):
            assert words in done.stderr, done.stderr


def main():
    dunlin, model, memory, seconds = sys.argv[1:5]
    path = pathlib.Path(model).expanduser()
    if not path.exists():
        print(f"SKIP: {path.name} is not in the cache")
        return 0
    if path.suffix == ".gguf":
        check(dunlin, str(path), memory, float(seconds))
    else:
        with tempfile.TemporaryDirectory() as folder:
            tiny = str(pathlib.Path(folder) / "tiny.gguf")
            subprocess.run([model, tiny], check=True)
            check_too_small(dunlin, tiny)
            check(dunlin, tiny, memory, float(seconds))
    print("memory stays within the plan")
    return 0


if __name__ == "__main__":
    sys.exit(main())
