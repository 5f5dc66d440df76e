"""A chat of `dunlin run` with a tiny model on a pseudo-terminal, for the tests of what it does.

usage: TEST.py DUNLIN MAKE_TINY_MODEL"""

import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

from pty_screen import Terminal
from tiny_model import tiny_model

DUNLIN, MAKE_TINY_MODEL = sys.argv[1:3]
del sys.argv[1:3]

CTRL_A, CTRL_C, CTRL_D, CTRL_K, CTRL_W, CTRL_Y, CTRL_Z = (bytes([ord(c) & 31]) for c in "ACDKWYZ")
ENTER, ALT_ENTER, BACKSPACE = b"\r", b"\x1b\r", b"\x7f"
UP, DOWN, RIGHT, LEFT, DELETE = b"\x1b[A", b"\x1b[B", b"\x1b[C", b"\x1b[D", b"\x1b[3~"
STATS = re.compile(r"\(first token \d+ ms, \d+\.\d tokens/s; prompt (\d+) tokens, (\d+) cached; answer (\d+)\)")
# So slow that an answer is still running when the test stops it.
SLOW = ("--isa", "reference", "--threads", "1")


class Chat(Terminal):
    """A chat with the tiny model. With max_tokens 0 an answer goes on to the end of the context."""

    def __init__(self, case, *flags, max_tokens=8, temperature=0, model=None, env=None, columns=120, rows=40,
                 stdout=None):
        command = [DUNLIN, "run", model or case.model, "--max-tokens", str(max_tokens),
                   "--temperature", str(temperature), *flags]
        super().__init__(command, case.environment | (env or {}), columns, rows, stdout)
        self.case = case

    def __enter__(self):
        self.wait_prompt(1)
        return self

    def num_prompts(self):
        return sum(row.startswith(">>>") for row in self.screen.text().split("\n"))

    def wait_prompt(self, number):
        self.wait(lambda: self.num_prompts() >= number and self.line() == ">>>", f"prompt {number}")

    def line(self):
        """The row of the cursor."""
        return "".join(self.screen.rows[self.screen.row]).rstrip()

    def ask(self, keys):
        """Sends them and Enter, and gives what the screen shows until the next prompt."""
        before, number = len(self.screen.rows), self.num_prompts() + 1
        self.send(keys)
        self.send(ENTER)
        self.wait_prompt(number)
        return "\n".join(self.screen.text().split("\n")[before - 1:])

    def stats(self, keys):
        """Prompt, cached and answer tokens of a turn under --verbose."""
        shown = self.ask(keys)
        found = STATS.search(shown)
        self.case.assertIsNotNone(found, shown)
        return [int(number) for number in found.groups()]

    def saved(self):
        """The conversation, as /save writes it."""
        path = self.case.folder / f"saved-{self.num_prompts()}-{self.process.pid}.json"
        self.ask(f"/save {path}")
        return json.loads(path.read_text(encoding="utf-8"))

    def questions(self):
        return [message["content"] for message in self.saved() if message["role"] == "user"]


class ChatTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = tiny_model(cls, MAKE_TINY_MODEL)
        cls.shared = pathlib.Path(cls.model).parent
        cls.base_model = str(cls.shared / "base.gguf")
        data = pathlib.Path(cls.model).read_bytes()
        pathlib.Path(cls.base_model).write_bytes(data.replace(b"tokenizer.chat_template", b"tokenizer.chat_t_is_off"))

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.environment = {k: v for k, v in os.environ.items()
                            if not k.startswith(("DUNLIN_", "XDG_")) and k != "NO_COLOR"}
        self.environment |= {"HOME": str(self.folder), "TERM": "xterm-256color"}
