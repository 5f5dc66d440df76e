"""`dunlin run` with a prompt: as an argument or from a pipe, and outputs that can't be written.

usage: run_prompt_test.py DUNLIN MAKE_TINY_MODEL"""

import os
import signal
import subprocess
import unittest

from chat_terminal import DUNLIN, SLOW, STATS, ChatTest


class OnePrompt(ChatTest):
    def run_once(self, *flags, **options):
        command = [DUNLIN, "run", self.model, "--temperature", "0", "--max-tokens", "8", *flags]
        return subprocess.run(command, env=self.environment, capture_output="stdout" not in options, timeout=120,
                              **options)

    def test_a_prompt_from_a_pipe(self):
        argument = self.run_once("hello")
        piped = self.run_once(input=b"hello\n")
        self.assertEqual((piped.returncode, piped.stdout, piped.stderr), (0, argument.stdout, b""))
        self.assertGreater(len(piped.stdout), 4)

    def test_an_empty_pipe(self):
        for content in (b"", b" \n\n"):
            done = self.run_once(input=content)
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            self.assertIn(b"the prompt from standard input is empty", done.stderr)

    def test_a_pipe_with_broken_utf8(self):
        self.assertEqual(self.run_once(input=b"a\xff\x00b").returncode, 0)

    def test_a_pipe_that_never_ends(self):
        with open("/dev/zero", "rb") as zeros:
            done = self.run_once(stdin=zeros)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"longer than 16 MiB", done.stderr)

    def test_verbose(self):
        self.assertRegex(self.run_once("--verbose", "hello").stderr.decode(), STATS)

    def test_a_reader_that_goes_away(self):
        reading, writing = os.pipe()
        os.close(reading)
        done = self.run_once("hello", stdout=writing, stderr=subprocess.PIPE)
        os.close(writing)
        self.assertEqual((done.returncode, done.stderr), (141, b""))

    def test_a_full_disk(self):
        with open("/dev/full", "wb") as full:
            done = self.run_once("hello", stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"can't write to standard output: No space left on device", done.stderr)

    def test_closed_standard_streams(self):
        done = self.run_once("hello", preexec_fn=lambda: os.close(1))
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(b"can't write to standard output", done.stderr)
        self.assertEqual(self.run_once(preexec_fn=lambda: os.close(0)).returncode, 1)

    def test_sigint(self):
        command = [DUNLIN, "run", self.model, "go", *SLOW]
        with subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE) as process:
            process.stdout.read(1)
            process.send_signal(signal.SIGINT)
            self.assertLess(len(process.stdout.read()), 3000)
            self.assertEqual(process.wait(60), 130)

    def test_a_base_model(self):
        done = subprocess.run([DUNLIN, "run", self.base_model, "xyz", "--max-tokens", "4", "--system", "s"],
                              env=self.environment, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"base model (no chat template): it continues your text; --system has no effect", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
