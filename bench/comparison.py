"""What the comparisons with llama.cpp share: their options, and either engine's server from its exec on."""

import argparse
import http.client
import json
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests/e2e"))
from running_server import free_port  # noqa: E402

MODELS = ("SmolLM2-135M-Instruct.Q4_1.gguf", "gemma-3-270m.Q4_K_M.gguf", "Qwen2.5-Coder-0.5B-Instruct.Q4_K_M.gguf")
READY_WITHIN_S = 60


def option_parser(description, rounds, alone=False):
    """`alone`: of Dunlin only, without --peer."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=pathlib.Path, metavar="MODEL.gguf", help="default: the test models")
    if alone:
        parser.set_defaults(alone=True)
    else:
        parser.add_argument("--peer", default=os.environ.get("DUNLIN_PEER"),
                            help="folder of llama.cpp's programs (or DUNLIN_PEER)")
    parser.add_argument("--dunlin", default=str(ROOT / "build/release/dunlin"))
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    return parser


def parse_options(parser, program=None, models=MODELS):
    """The options, `models` filled in; `program` is what the peer's folder must hold."""
    options = parser.parse_args()
    if getattr(options, "alone", False):
        options.peer = None
    elif not options.peer or not (pathlib.Path(options.peer) / program).exists():
        parser.error(f"--peer must name the folder that holds {program}")
    cache = pathlib.Path(os.environ.get("DUNLIN_MODELS_DIR") or os.path.expanduser("~/.cache/dunlin/models"))
    options.models = options.models or [cache / name for name in models]
    for model in options.models:
        if not model.exists():
            parser.error(f"{model} does not exist (dunlin pull fetches the test models)")
    return options


def progress(text):
    """On a terminal, in place of the last."""
    if sys.stderr.isatty():
        print(f"{text:<79}", end="\r", file=sys.stderr, flush=True)


def cpu():
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


class StartedServer:
    """Context manager: a server from its exec on. After `with`, ready_s is how many seconds passed until /health
    answered 200."""

    def __init__(self, command):
        """`command`: the program and its arguments, without the port."""
        self.port = free_port()
        self.command = [str(part) for part in command] + ["--port", str(self.port)]

    def __enter__(self):
        self.begin = time.monotonic()
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while self.seconds() < READY_WITHIN_S and self.process.poll() is None:
            if self.is_healthy():
                self.ready_s = self.seconds()
                return self
            time.sleep(0.001)
        self.__exit__()
        raise SystemExit(f"{self.command[0]} was not ready after {READY_WITHIN_S} s")

    def __exit__(self, *exc):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)

    def seconds(self):
        return time.monotonic() - self.begin

    def is_healthy(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def first_token(self, prompt):
        """Seconds since exec at which the first token of an answer to `prompt` (text or token ids) came."""
        body = {"prompt": prompt, "max_tokens": 4, "temperature": 0, "stream": True}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            for line in answer:
                if line.startswith(b"data: {"):
                    return self.seconds()
            raise SystemExit(f"{self.command[0]} gave no token (status {answer.status})")
        finally:
            connection.close()

    def wait_idle(self, seconds=60):
        """Returns once Dunlin has nothing to do and nothing waiting."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
            connection.close()
            gauges = re.findall(r"^vllm:num_requests_(?:running|waiting)(?:{.*})? (\S+)$", text, re.M)
            if len(gauges) >= 2 and not any(float(value) for value in gauges):
                return
            time.sleep(0.05)
        raise SystemExit(f"{self.command[0]} still had work after {seconds} s")

    def peak_mib(self):
        """The most memory that the process has held so far."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        return 0.0


def bench_serve(dunlin, server, *flags):
    """The JSON of `dunlin bench serve` against a StartedServer; ends the script where it fails."""
    command = [dunlin, "bench", "serve", "--url", f"http://127.0.0.1:{server.port}", "--output", "json", "-q", *flags]
    command = [str(part) for part in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed")
    return json.loads(done.stdout)


def serve_command(who, dunlin, peer, model, threads):
    """`who`: "dunlin" or "peer"; `peer`: the folder of llama-server."""
    program = [dunlin, "serve", model] if who == "dunlin" else [pathlib.Path(peer) / "llama-server", "-m", model]
    return program + ["--threads", threads]
