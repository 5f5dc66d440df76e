"""Typing in the chat of `dunlin run`: editing, several lines, pastes, sizes of the terminal, history.

usage: chat_typing_test.py DUNLIN MAKE_TINY_MODEL"""

import signal
import stat
import unittest

from chat_terminal import (ALT_ENTER, BACKSPACE, CTRL_A, CTRL_C, CTRL_D, CTRL_K, CTRL_W, CTRL_Y, CTRL_Z, DELETE,
                           DOWN, ENTER, LEFT, RIGHT, SLOW, UP, Chat, ChatTest)


class Typing(ChatTest):
    def test_a_turn_and_the_way_out(self):
        with Chat(self) as chat:
            self.assertIn("/help", chat.screen.text())
            shown = chat.ask("hello")
            self.assertTrue(shown.startswith(">>> hello\n"), shown)
            self.assertIn("(cut at --max-tokens)", shown)
            self.assertTrue(chat.screen.bracketed_paste)
            self.assertFalse(chat.has_its_settings())
            chat.send(CTRL_D)
            self.assertEqual(chat.wait_end(), 0)
            self.assertTrue(chat.has_its_settings())
            self.assertFalse(chat.screen.bracketed_paste)
            self.assertEqual(chat.line(), "")

    def test_bye_leaves(self):
        with Chat(self) as chat:
            chat.send("/bye\r")
            self.assertEqual(chat.wait_end(), 0)

    def test_editing(self):
        with Chat(self) as chat:
            chat.send("helo" + "wrld")
            chat.send(LEFT * 5 + b"l" + RIGHT + b" " + RIGHT + b"o")
            chat.wait(lambda: chat.line() == ">>> hello world", "edited line")
            self.assertEqual(chat.screen.column, 12)
            chat.send(CTRL_A + DELETE + b"J" + CTRL_K + CTRL_Y + b"xy" + BACKSPACE + BACKSPACE + b" one two" + CTRL_W)
            chat.ask("three")
            self.assertEqual(chat.questions(), ["Jello world one three"])

    def test_wide_and_combining_characters(self):
        with Chat(self) as chat:
            chat.send("日本e\u0301語")
            chat.send(LEFT + LEFT + BACKSPACE)
            chat.wait(lambda: chat.line() == ">>> 日e\u0301語", "edited line")
            self.assertEqual(chat.screen.column, 6)
            chat.send(DELETE + "ü".encode())
            chat.ask("")
            self.assertEqual(chat.questions(), ["日ü語"])

    def test_a_long_line_folds_and_unfolds(self):
        text = "".join(chr(ord("a") + i % 26) for i in range(200))
        with Chat(self, columns=40) as chat:
            before = len(chat.screen.rows)
            chat.send(text)
            chat.wait(lambda: len(chat.screen.rows) == before + 5, "folded line")
            shown = "".join(chat.screen.text().split("\n")[before - 1:])
            self.assertEqual(shown, ">>> " + text)
            chat.send(CTRL_A + CTRL_K)
            chat.wait(lambda: len(chat.screen.rows) == before, "empty line")

    def test_the_terminal_changes_its_size(self):
        text = "".join(chr(ord("a") + i % 26) for i in range(150))
        with Chat(self, columns=100) as chat:
            chat.send(text)
            chat.wait(lambda: text[-20:] in chat.line(), "folded line")
            for columns in (33, 70, 40):
                while chat.read(0.05):  # a paint for the old size must not meet the new one
                    pass
                chat.resize(columns, 20)
                rows = -(-len(">>> " + text) // columns)
                chat.wait(lambda: len(chat.line()) == len(">>> " + text) % columns, f"line in {columns} columns")
                shown = chat.screen.text().split("\n")
                self.assertEqual("".join(shown[-rows:]), ">>> " + text)
                self.assertEqual(chat.num_prompts(), 1, chat.screen.text())

    def test_more_rows_than_the_screen_has(self):
        with Chat(self, columns=60, rows=5) as chat:
            lines = [f"line {i}" for i in range(12)]
            chat.send(b"\x1b[200~" + "\r".join(lines).encode() + b"\x1b[201~")
            chat.wait(lambda: chat.line() == "... line 11", "last line")
            self.assertNotIn("line 2", chat.screen.text())
            chat.ask("")
            self.assertIn(">>> line 0\n... line 1\n... line 2\n", chat.screen.text())
            self.assertEqual(chat.questions(), ["\n".join(lines)])

    def test_several_lines(self):
        with Chat(self) as chat:
            chat.ask(b"one\\" + ENTER + b"two" + ALT_ENTER + b"three")
            self.assertIn(">>> one\n... two\n... three\n", chat.screen.text())
            chat.ask(b'"""' + ENTER + b"a\\" + ENTER + b'b"""')
            self.assertEqual(chat.questions(), ["one\ntwo\nthree", "a\\\nb"])

    def test_a_paste_of_several_lines_is_one_message(self):
        with Chat(self) as chat:
            chat.send(b"\x1b[200~for x in y:\r\n\tprint(x) \\\r\n\r\nend\n\x1b[201~")
            chat.wait_for("... end")
            self.assertEqual(chat.num_prompts(), 1)
            chat.ask("")
            self.assertEqual(chat.questions(), ["for x in y:\n\tprint(x) \\\n\nend"])

    def test_a_huge_paste_is_refused_and_said(self):
        with Chat(self, columns=200) as chat:
            chat.send(b"kept\x1b[200~" + b"x" * (1 << 20) + b"\x1b[201~")
            chat.wait_for("at most 1 MiB")
            chat.ask("!")
            self.assertEqual(chat.questions(), ["kept!"])

    def test_broken_bytes_and_control_characters(self):
        with Chat(self) as chat:
            chat.send(b"a\xff\xe6\x97b\x00\x07\x1e\xc2\x9bc\x1b[38;5;1md\x1b[200~e\x1b[31mf\xfe\x1b[201~")
            chat.ask("")
            self.assertEqual(chat.questions(), ["a\ufffd\ufffdbcde[31mf\ufffd"])
            self.assertEqual(chat.screen.unknown, [])

    def test_empty_lines_ask_nothing(self):
        with Chat(self) as chat:
            chat.ask("")
            chat.ask("   ")
            chat.ask('""""""')
            self.assertEqual(chat.saved(), [])

    def test_ctrl_c_empties_the_line_and_never_leaves(self):
        with Chat(self) as chat:
            chat.send("half a thought")
            chat.wait_for("thought")
            chat.send(CTRL_C)
            chat.wait(lambda: chat.line() == ">>>", "empty line")
            chat.send(CTRL_Y)
            chat.wait_for("half a thought")
            chat.send(CTRL_C + CTRL_C)
            chat.wait_for("(Ctrl-D or /bye leaves)")
            chat.signal(signal.SIGINT)
            chat.wait_prompt(3)
            self.assertIn("(cut", chat.ask("still there"))

    def test_keys_typed_during_an_answer_wait(self):
        with Chat(self, *SLOW, max_tokens=300) as chat:
            chat.send("first\r")
            chat.wait(lambda: len(chat.line()) > 4 and "first" not in chat.line(), "answer")
            chat.send("second\rthi")
            chat.wait(lambda: chat.line() == ">>> thi", "what was typed ahead")
            chat.ask("rd")
            self.assertEqual(chat.questions(), ["first", "second", "third"])

    def test_suspending_keeps_the_message(self):
        with Chat(self) as chat:  # without a shell above, the terminal does not let a program stop
            chat.send(b"to be con" + CTRL_Z + b"tinued")
            chat.ask("")
            self.assertEqual(chat.questions(), ["to be continued"])


class History(ChatTest):
    def path(self):
        return self.folder / ".local/state/dunlin/history"

    def test_it_comes_back(self):
        with Chat(self) as chat:
            chat.ask("one")
            chat.ask(b"two\\" + ENTER + b"lines")
            chat.send(UP)
            chat.wait(lambda: chat.line() == "... lines", "last message")
            chat.send(UP + UP)
            chat.wait(lambda: chat.line() == ">>> one", "first message")
            chat.send(DOWN + DOWN + DOWN)
            chat.wait(lambda: chat.line() == ">>>", "empty line")
            chat.process.kill()  # what was sent is kept, however the program ends
            chat.wait_end()
        self.assertEqual(self.path().read_text(), "one\ntwo\\nlines\n")
        self.assertEqual(stat.S_IMODE(self.path().stat().st_mode), 0o600)
        with Chat(self) as chat:
            chat.send(UP + UP + UP)
            chat.wait(lambda: chat.line() == ">>> one", "first message")
            chat.ask(" more")
            self.assertEqual(chat.questions(), ["one more"])
        self.assertTrue(self.path().read_text().startswith("one\ntwo\\nlines\none more\n"))

    def test_another_file_or_none(self):
        with Chat(self, env={"DUNLIN_HISTORY": str(self.folder / "mine")}) as chat:
            chat.ask("one")
        self.assertEqual((self.folder / "mine").read_text(), "one\n")
        with Chat(self, env={"DUNLIN_HISTORY": ""}) as chat:
            chat.ask("two")
        with Chat(self, env={"XDG_STATE_HOME": str(self.folder / "state")}) as chat:
            chat.ask("three")
        self.assertEqual((self.folder / "state/dunlin/history").read_text(), "three\n")
        self.assertFalse(self.path().exists())

    def test_what_hinders_it_is_said(self):
        with Chat(self, env={"DUNLIN_HISTORY": "/dev/null/history"}) as chat:
            self.assertIn("(the history is not kept: can't open /dev/null/history: Not a directory)",
                          chat.screen.text())
            chat.ask("one")
            chat.send(UP)
            chat.wait_for(">>> one")


if __name__ == "__main__":
    unittest.main(verbosity=2)
