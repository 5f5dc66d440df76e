"""Neighbours for benchmarks: processes that want the cores beside what is measured.

They run at the same priority and in the same session as the benchmark, so that the system shares the cores out between
them and what is measured thread by thread. None outlives the benchmark, however that ends."""

import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# Takes some seconds to compile with -O2: regular expressions, variants and maps, instantiated over and over.
SOURCE = r"""
#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

template <int N>
struct Step {
  using Value = std::variant<int, std::string, std::tuple<std::integral_constant<int, N>, std::string>>;
  std::map<std::string, std::vector<Value>> values;

  std::size_t run(const std::string& text) {
    const std::regex pattern("([a-z]+)=(\\d+)" + std::to_string(N));
    for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
      values[(*at)[1]].push_back(std::stoi((*at)[2]) + N);
    }
    std::size_t sum = Step<N - 1>().run(text);
    for (auto& [name, list] : values) {
      std::sort(list.begin(), list.end(), [](const Value& a, const Value& b) { return a.index() + N < b.index(); });
      for (const Value& value : list) sum += std::visit([](const auto& x) { return sizeof(x) + N; }, value);
    }
    return sum;
  }
};

template <>
struct Step<0> {
  std::size_t run(const std::string& text) { return text.size(); }
};

std::size_t run(const std::string& text) { return Step<4>().run(text); }
"""


def end_with_parent():
    """In a child: the system kills it when the benchmark dies without a chance to do so."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Neighbours:
    """Context manager: the commands run, each a process group of its own, until `with` ends."""

    def __init__(self, commands):
        self.commands = commands

    def __enter__(self):
        self.processes = []
        try:
            for command in self.commands:
                self.processes.append(subprocess.Popen(command, process_group=0, preexec_fn=end_with_parent))
            if self.processes:
                time.sleep(0.3)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exc):
        ended = [process for process in self.processes if process.poll() is not None]
        self.stop()
        if ended and exc[0] is None:
            raise SystemExit(f"a neighbour ended by itself, with status {ended[0].returncode}: {ended[0].args}")

    def stop(self):
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # ended by itself, and its children with it
            process.wait()


class BusyLoops(Neighbours):
    """So many processes that compute without end."""

    def __init__(self, count=1):
        super().__init__([[sys.executable, "-c", "while True: pass"]] * count)


def compiler():
    """The C++ compiler that CompileJobs uses, or None."""
    return shutil.which(os.environ.get("CXX", "g++"))


class CompileJobs(Neighbours):
    """So many jobs that compile the same source, again and again. Needs compiler()."""

    def __init__(self, count=2):
        self.count = count

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="dunlin-compile-")
        try:
            source = pathlib.Path(self.folder.name) / "neighbour.cc"
            source.write_text(SOURCE, encoding="utf-8")
            loop = 'while "$0" -std=c++17 -O2 -c "$1" -o "$2"; do :; done; exit 1'
            self.commands = [["sh", "-c", loop, compiler(), source, source.with_suffix(f".{job}.o")]
                             for job in range(self.count)]
            return super().__enter__()
        except BaseException:
            self.folder.cleanup()
            raise

    def __exit__(self, *exc):
        try:
            super().__exit__(*exc)
        finally:
            self.folder.cleanup()
