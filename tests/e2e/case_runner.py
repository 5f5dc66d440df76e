"""Runs named checks against `dunlin serve`: those with the same model and flags share a server, which
calls its model "M" as the collected cases do."""

import json
import pathlib
import random
import sys
import time

from api_client import post
from running_server import RunningServer, model_path

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
QWEN = "Qwen2.5-Coder-0.5B-Instruct.Q4_K_M.gguf"
GEMMA = "gemma-3-270m.Q4_K_M.gguf"
tests_dir = None
checks = []


def case(name, model=MODEL, flags=()):
    """Registers a check; several of these decorators run it against several models."""
    def register(function):
        checks.append((name, model, tuple(flags), function))
        return function
    return register


def case_files(folder):
    return tests_dir / "cases" / folder


def bodies(name):
    spec = json.loads((case_files("req") / f"{name}.json").read_text(encoding="utf-8"))
    found = spec["bodies"] if "bodies" in spec else [spec["body"]]
    return [body | {"model": "M"} for body in found]


def expect(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what))


def ok(server, path, body):
    status, answer = post(server, path, body)
    expect(status == 200, status, answer)
    return answer


def refused(server, path, body, status=400):
    got, answer = post(server, path, body)
    expect(got == status, got, answer)
    expect(answer["error"]["message"], answer)
    return answer["error"]


def greedy_hello(server):
    body = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8, "temperature": 0}
    return ok(server, CHAT, body)["choices"][0]["message"]["content"]


def wait_idle(server, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if server.metric("vllm:num_requests_running") == 0 and server.metric("vllm:num_requests_waiting") == 0:
            expect(server.metric("vllm:kv_cache_usage_perc") == 0, "blocks are still held")
            return
        time.sleep(0.02)
    raise AssertionError(f"not idle after {seconds} s")


def words(count, seed=1):
    source = random.Random(seed)
    known = "river stone cloud paper garden silver window music engine morning".split()
    return " ".join(source.choice(known) for _ in range(count))


def run_group(dunlin, model, flags, group):
    failures = 0
    path = model_path(model)
    if path is None:
        print(f"SKIP: {model} is not in the cache; run `dunlin pull`")
        return 0
    with RunningServer(dunlin, path, "--model-name", "M", *flags) as server:
        for name, function in group:
            begin = time.monotonic()
            try:
                function(server)
                print(f"ok    {name} ({time.monotonic() - begin:.1f} s)", flush=True)
            except Exception as error:  # every case is tried, each failure told
                failures += 1
                print(f"FAIL  {name}: {type(error).__name__}: {str(error)[:500]}", flush=True)
            if server.process.poll() is not None:
                print(f"FAIL  the server ended during {name}: {server.output()}")
                return failures + 1
    return failures


def main():
    global tests_dir
    dunlin, folder, *names = sys.argv[1:]
    tests_dir = pathlib.Path(folder)
    groups = {}
    for name, model, flags, function in checks:
        if not names or name in names:
            groups.setdefault((model, flags), []).append((name, function))
    failures = sum(run_group(dunlin, model, flags, group) for (model, flags), group in groups.items())
    print(f"{failures} failures")
    return 1 if failures or not groups else 0
