"""How the commands take their flags, and what they say where their output can't be written.

usage: command_line_test.py DUNLIN MAKE_TINY_MODEL"""

import os
import resource
import subprocess
import unittest

from chat_terminal import DUNLIN, ChatTest


class CommandLine(ChatTest):
    def dunlin(self, *arguments, **options):
        return subprocess.run([DUNLIN, *arguments], env=self.environment, timeout=120,
                              **({"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
                                 | options))

    def commands_that_print(self):
        """Arguments and what goes to standard input: little and much of each way of printing."""
        yield ["--version"], b""
        yield ["run", "--help"], b""
        yield ["list"], b""
        yield ["debug", "describe", "man"], b""
        yield ["inspect", self.model, "--output", "json"], b""
        yield ["tokenize", self.model, "a"], b""
        yield ["tokenize", self.model, "-", "--output", "ids"], b"abc " * 20_000
        yield ["bench", self.model, "-p", "4", "-n", "0", "-r", "1"], b""

    def test_a_full_disk(self):
        for arguments, text in self.commands_that_print():
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                done = self.dunlin(*arguments, stdin=None, input=text, stdout=full)
                self.assertEqual(done.returncode, 1)
                self.assertIn(b"dunlin: can't write to standard output", done.stderr)

    def test_a_reader_that_goes_away(self):
        for arguments, text in self.commands_that_print():
            with self.subTest(arguments):
                reading, writing = os.pipe()
                os.close(reading)
                done = self.dunlin(*arguments, stdin=None, input=text, stdout=writing)
                os.close(writing)
                self.assertEqual(done.returncode, 141, done.stderr)
                self.assertNotIn(b"can't write", done.stderr)

    def test_a_flag_for_several_values_leaves_the_arguments_behind_it(self):
        done = self.dunlin("run", "--max-tokens", "2", "--stop", "zq", "--stop", "qz", self.model, "hello")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.dunlin("bench", "-r", "1", "-n", "0", "-p", "4,8", "-t", "1", self.model)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.dunlin("bench", "batched", "-npp", "4", "-ntg", "2", "-npl", "1", "-t", "1", self.model)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_system_without_memory_or_threads(self):
        def limit(size):
            resource.setrlimit(resource.RLIMIT_AS, (size, size))
        # The stacks alone are 8 GB of addresses.
        for arguments in (["run", self.model, "hello"], ["serve", self.model, "--port", "0"],
                          ["bench", self.model, "-p", "4", "-n", "0", "-r", "1"]):
            done = self.dunlin(*arguments, "--threads", "1024", preexec_fn=lambda: limit(2 << 30))
            self.assertEqual(done.returncode, 1, done.stderr)
            [line] = [line for line in done.stderr.splitlines() if not line.startswith(b"measuring")]
            self.assertIn(b"starts no more threads", line)
            self.assertIn(b"--threads", line)
        # Room for the program, not for its cache.
        done = self.dunlin("serve", self.model, "--port", "0", "--threads", "1", "--kv-memory", "1G",
                           preexec_fn=lambda: limit(400 << 20))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"dunlin: not enough memory", done.stderr)

    def test_values_out_of_range(self):
        for arguments, code, words in (
                (["run", self.model, "hello", "--max-tokens", "-1"], 2, b"not in range 0 to 2147483647"),
                (["run", self.model, "hello", "--seed", "99999999999999999999999"], 2, b"--seed: must be a whole number"),
                (["run", self.model, "hello", "--seed", "-1"], 2, b"--seed: must be a whole number"),
                (["serve", self.model, "--context", "99999999999"], 2, b"not in range 0 to 2147483647"),
                (["serve", self.model, "--kv-policy", "best"], 2, b"'best' is not a KV policy; there are full, window"),
                (["run", self.model, "hello", "--kv-policy", "window,window=40"], 2, b"multiple of 16"),
                (["serve", self.model, "--kv-memory", "900000T"], 1, b"--kv-memory: 900000T is more than the "),
                (["run", self.model, "hello", "--temperature", "nan"], 1, b"temperature must be in [0, 1e30], got nan"),
                (["serve", self.model, "--chat-template", "/"], 1, b"--chat-template: can't read /"),
                (["serve", self.model, "--chat-template", "/dev/zero"], 1, b"/dev/zero is longer than 1 MiB")):
            with self.subTest(arguments):
                done = self.dunlin(*arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
