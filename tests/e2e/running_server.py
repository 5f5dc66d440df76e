"""A `dunlin serve` of the built program on a free port, for the tests that talk to it."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import urllib.request


def model_path(file_name):
    """The path of a real model in the cache, or None."""
    folder = os.environ.get("DUNLIN_MODELS_DIR") or os.path.expanduser("~/.cache/dunlin/models")
    path = pathlib.Path(folder) / file_name
    return str(path) if path.exists() else None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class RunningServer:
    """Context manager: starts the server, waits until /health answers, stops it with SIGTERM."""

    def __init__(self, dunlin, model, *flags, env=None):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.command = [dunlin, "serve", model, "--port", str(self.port), *flags]
        self.env = dict(os.environ) | (env or {})
        self.process = None

    def __enter__(self):
        self.process = subprocess.Popen(self.command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.set_blocking(self.process.stdout.fileno(), False)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended: {self.output()}")
            try:
                if self.get("/health")[0] == 200:
                    return self
            except OSError:
                time.sleep(0.02)
        raise RuntimeError("the server is not ready after 60 s")

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.stdout.close()

    def output(self):
        """What it has written since the last time."""
        return (self.process.stdout.read() or b"").decode(errors="replace")

    def wait_output(self, pattern, seconds=30):
        """The same, once the pattern is found in it: a line may come after its answer."""
        deadline = time.monotonic() + seconds
        text = self.output()
        while not re.search(pattern, text):
            assert time.monotonic() < deadline, f"no {pattern} after {seconds} s in: {text}"
            time.sleep(0.01)
            text += self.output()
        return text

    def get(self, path, headers=None):
        request = urllib.request.Request(self.url + path, headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name):
        """The value of a metric without regard to its labels."""
        match = re.search(rf"^{re.escape(name)}(?:\{{[^}}]*\}})? (\S+)$", self.get("/metrics")[1], re.M)
        return float(match.group(1)) if match else None

    def metric_sum(self, name):
        """The sum of a metric over all of its labels."""
        return sum(map(float, re.findall(rf"^{re.escape(name)}(?:\{{[^}}]*\}})? (\S+)$", self.get("/metrics")[1], re.M)))

    def wait_metric(self, name, value, seconds=30):
        """Returns once a metric has that value; an error says what it had instead."""
        deadline = time.monotonic() + seconds
        while (found := self.metric(name)) != value:
            assert time.monotonic() < deadline, f"{name} is {found}, not {value}, after {seconds} s"
            time.sleep(0.01)
