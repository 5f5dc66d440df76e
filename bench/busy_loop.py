"""A neighbour for benchmarks: processes that compute without end."""

import subprocess
import sys
import time


class BusyLoops:
    """Context manager: so many loops run beside what is measured."""

    def __init__(self, count=1):
        self.count = count

    def __enter__(self):
        self.processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(self.count)]
        if self.processes:
            time.sleep(0.3)

    def __exit__(self, *exc):
        for process in self.processes:
            process.kill()
            process.wait()
