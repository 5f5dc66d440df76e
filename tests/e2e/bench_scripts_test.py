"""bench/serving, load_curve, cached_prefix and server_cost from end to end, with a tiny model and Dunlin in the peer's
place: what they print is complete. It asks nothing of the figures.

usage: bench_scripts_test.py DUNLIN MAKE_TINY_MODEL"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

DUNLIN, MAKE_TINY_MODEL = sys.argv[1], sys.argv[2]
BENCH = pathlib.Path(__file__).resolve().parent.parent.parent / "bench"
PEER = """#!/usr/bin/env python3
import os, sys
flags = dict(zip(sys.argv[1::2], sys.argv[2::2]))
context = int(flags["-c"]) // int(flags["-np"])
os.execv({dunlin!r}, ["dunlin", "serve", flags["-m"], "--threads", flags["--threads"], "--port", flags["--port"],
                      "--max-seqs", flags["-np"], "--context", str(context)])
"""


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "tiny.gguf"
        subprocess.run([MAKE_TINY_MODEL, self.model], check=True)
        peer = self.folder / "llama-server"
        peer.write_text(PEER.format(dunlin=str(pathlib.Path(DUNLIN).resolve())))
        peer.chmod(0o755)

    def run_script(self, name, *arguments):
        done = subprocess.run([BENCH / name, "--peer", self.folder, "--dunlin", DUNLIN, "--threads", "1", *arguments],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_crowd_loses_nothing(self):
        record = json.loads(self.run_script("serving", "--rounds", "1", "--work", "crowd", "--crowd", "400", "--output",
                                            "json", self.model))
        figures = {result["figure"]: result["dunlin"] for result in record["results"]}
        self.assertEqual((figures["requests lost"], figures["descriptors more"]), ([0], [0]))

    def test_a_soak_leaves_memory_flat(self):
        record = json.loads(self.run_script("serving", "--alone", "--rounds", "1", "--work", "soak", "--soak-s", "20",
                                            "--output", "json", self.model))
        figures = {result["figure"]: result["dunlin"][0] for result in record["results"]}
        self.assertEqual(figures["descriptors more"], 0)
        self.assertLess(figures["MiB more at most"], 8 + 0.05 * figures["MiB at first"], figures)

    def test_a_cached_prefix(self):
        done = subprocess.run([BENCH / "cached_prefix", "--dunlin", DUNLIN, "--threads", "1", "--rounds", "1", "--prefix",
                               "160", "--suffix", "8", self.model], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^\| tiny.gguf \|( [\d.]+ \|){3}( [\d.]+x \|){2} \d+ \|$")

    def test_the_cost_of_the_server(self):
        done = subprocess.run([BENCH / "server_cost", "--dunlin", DUNLIN, "--threads", "1", "--rounds", "1", "--clients",
                               "1,3", "--tokens", "16", self.model], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(re.findall(r"(?m)^\| tiny \| [13] \| [1-9][\d.]* \| [\d.]+ to [\d.]+ \|$", done.stdout)), 2,
                         done.stdout)

    def test_a_load_curve(self):
        plot, save = self.folder / "curve.svg", self.folder / "curve.json"
        text = self.run_script("load_curve", "--slots", "4", "--context", "128", "--requests", "12", "--rates", "20,60",
                               "--plot", plot, "--save", save, self.model, "--", "--input-len", "8", "--output-len", "4")
        self.assertEqual(text.count("| Dunlin |"), 2)
        self.assertEqual(text.count("| llama-server |"), 2)
        self.assertEqual(plot.read_text().count("<polyline"), 2)
        self.assertEqual(len(json.loads(save.read_text())["points"]), 4)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
