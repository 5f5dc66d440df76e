"""The chat of `dunlin run`: Ctrl-C, commands, long conversations, signals, and what reaches the terminal.

usage: chat_test.py DUNLIN MAKE_TINY_MODEL"""

import json
import os
import re
import signal
import unittest

from chat_terminal import CTRL_C, CTRL_D, SLOW, STATS, Chat, ChatTest


class Stopping(ChatTest):
    def check_stops(self, stop):
        with Chat(self, *SLOW, "--verbose", max_tokens=0) as chat:
            chat.send("go\r")
            chat.wait(lambda: len(chat.screen.rows) > 4, "answer")
            stop(chat)
            chat.wait_prompt(2)
            self.assertIn("(stopped; what was said stays in the conversation)", chat.screen.text())
            num_tokens = int(STATS.search(chat.screen.text())[3])
            self.assertLess(num_tokens, 1500)
            conversation = chat.saved()
            self.assertEqual([message["role"] for message in conversation], ["user", "assistant"])
            self.assertGreater(len(conversation[1]["content"]), 0)
            chat.send("again\r")
            chat.wait(lambda: "again" not in chat.line() and len(chat.line()) > 4, "answer")
            stop(chat)
            chat.wait_prompt(4)
            self.assertEqual(len(chat.saved()), 4)

    def test_ctrl_c(self):
        self.check_stops(lambda chat: chat.send(CTRL_C))

    def test_sigint(self):
        self.check_stops(lambda chat: chat.signal(signal.SIGINT))

    def test_ctrl_c_drops_what_was_typed_ahead(self):
        self.check_stops(lambda chat: chat.send(b"typed ahead\r" + CTRL_C))

    def test_ending_signals_give_the_terminal_back(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            with Chat(self) as chat:
                chat.send("half")
                chat.wait_for("half")
                chat.signal(number)
                self.assertEqual(chat.wait_end(), -number)
                self.assertTrue(chat.has_its_settings())
                self.assertFalse(chat.screen.bracketed_paste)
                self.assertEqual(chat.line(), "")
            with Chat(self, *SLOW, max_tokens=0) as chat:
                chat.send("go\r")
                chat.wait(lambda: len(chat.screen.rows) > 4, "answer")
                chat.signal(number)
                self.assertEqual(chat.wait_end(), -number)
                self.assertTrue(chat.has_its_settings())

    def test_a_terminal_that_goes_away_ends_it(self):
        with Chat(self) as chat:
            chat.hang_up()
            self.assertIn(chat.process.wait(60), (0, -signal.SIGHUP))


class Commands(ChatTest):
    def test_help(self):
        with Chat(self) as chat:
            shown = chat.ask("/help")
            for word in ("/reset", "/system", "/save", "/verbose", "/bye", "Ctrl-C", "Alt-Enter"):
                self.assertIn(word, shown)
            self.assertTrue(all(len(row) <= 80 for row in shown.split("\n")), shown)

    def test_reset(self):
        with Chat(self, "--verbose") as chat:
            first = chat.stats("hello")[0]
            self.assertGreater(chat.stats("hello")[0], first)
            self.assertIn("(a new conversation)", chat.ask("/reset"))
            self.assertEqual(chat.stats("hello")[0], first)

    def test_system(self):
        with Chat(self, "--system", "Be kind.") as chat:
            self.assertIn("(Be kind.)", chat.ask("/system"))
            self.assertIn("is set", chat.ask("/system Be brief."))
            chat.ask("hello")
            self.assertEqual(chat.saved()[0], {"role": "system", "content": "Be brief."})
            self.assertIn("template's own again", chat.ask("/system default"))
            self.assertEqual(chat.saved()[0]["role"], "user")

    def test_save_never_overwrites(self):
        (self.folder / "precious").write_text("precious")
        with Chat(self) as chat:
            self.assertIn("already", chat.ask(f"/save {self.folder}/precious"))
            self.assertIn("needs a file name", chat.ask("/save"))
            self.assertIn("saved in", chat.ask("/save ~/home.json"))
        self.assertEqual((self.folder / "precious").read_text(), "precious")
        self.assertEqual(json.loads((self.folder / "home.json").read_text()), [])

    def test_verbose(self):
        with Chat(self) as chat:
            self.assertNotRegex(chat.ask("hello"), STATS)
            chat.ask("/verbose")
            self.assertRegex(chat.ask("hello"), STATS)

    def test_an_unknown_command_asks_nothing(self):
        with Chat(self) as chat:
            self.assertIn("there is no '/nope'", chat.ask("/nope"))
            chat.ask(" /nope")
            self.assertEqual(chat.questions(), [" /nope"])


class LongConversations(ChatTest):
    def test_later_turns_find_the_earlier_ones_computed(self):
        with Chat(self, "--verbose", "--seed", "3", temperature=1, max_tokens=100) as chat:
            length = 0
            for turn in range(4):
                num_prompt, num_cached, num_answer = chat.stats(f"question {turn}")
                self.assertGreater(num_prompt, length)
                # All but the last block, which is not full, and the last token, which was not computed.
                self.assertGreaterEqual(num_cached, length - 16)
                length = num_prompt + num_answer

    def test_the_oldest_turns_go_whole_and_it_says_so(self):
        with Chat(self, "--verbose", "--context", "256", max_tokens=30) as chat:
            dropped = 0
            for turn in range(12):
                shown = chat.ask(f"this is question number {turn}")
                num_prompt, _, num_answer = map(int, STATS.search(shown).groups())
                self.assertLessEqual(num_prompt, 256 - 30)
                self.assertEqual(num_answer, 30)
                if said := re.search(r"outgrew the context: the oldest (?:turn is|(\d+) turns are) dropped", shown):
                    dropped += int(said[1] or 1)
            self.assertGreater(dropped, 0)
            self.assertEqual(chat.questions(), [f"this is question number {turn}" for turn in range(dropped, 12)])

    def test_a_message_longer_than_the_context_changes_nothing(self):
        with Chat(self, "--context", "256") as chat:
            chat.ask("first")
            shown = chat.ask("word " * 100)
            self.assertRegex(shown.replace("\n", ""), r"needs \d+ tokens, but the context of 256 leaves 248")
            chat.ask("second")
            self.assertEqual(chat.questions(), ["first", "second"])

    def test_a_full_context_ends_the_answer(self):
        with Chat(self, "--context", "256", max_tokens=0) as chat:
            self.assertIn("(cut: the context is full)", chat.ask("hello"))
            self.assertIn("the oldest turn is dropped", chat.ask("hello"))

    def test_a_base_model_continues_the_text(self):
        with Chat(self, "--verbose", model=self.base_model) as chat:
            self.assertIn("base model (no chat template)", chat.screen.text())
            self.assertEqual(chat.stats("xyz")[0], 3)
            self.assertEqual(chat.stats("xyz")[0], 3 + 8 + 1 + 3)
            self.assertIn("no system message", chat.ask("/system x"))


class Output(ChatTest):
    def test_what_the_model_says_cannot_steer_the_terminal(self):
        with Chat(self, "--seed", "1", temperature=2, max_tokens=1900) as chat:
            chat.ask("go")
            said = chat.saved()[1]["content"]
            self.assertIn("\x1b", said)  # the tiny model says anything
            self.assertGreater(len({c for c in said if c < " "}), 10)
            self.assertEqual(chat.screen.unknown, [])
            self.assertIn("␛", chat.screen.text())

    def test_colours(self):
        with Chat(self) as chat:
            chat.ask("/nope")
            self.assertGreater(chat.screen.styles, 0)
        with Chat(self, env={"NO_COLOR": "1"}) as chat:
            chat.ask("/nope")
            self.assertEqual(chat.screen.styles, 0)

    def test_a_dumb_terminal(self):
        with Chat(self, env={"TERM": "dumb"}) as chat:
            self.assertTrue(chat.has_its_settings())
            chat.ask("hello")
            chat.send(CTRL_C)
            chat.wait_for("(Ctrl-D or /bye leaves)")
            chat.wait_prompt(3)
            chat.send("two \\\r")
            chat.wait_for("...")
            chat.ask("lines")
            self.assertEqual(chat.questions(), ["hello", "two \nlines"])
            self.assertNotIn(b"\x1b", chat.raw)
            chat.send(CTRL_D)
            self.assertEqual(chat.wait_end(), 0)

    def test_ctrl_c_on_a_dumb_terminal_stops_the_answer(self):
        with Chat(self, *SLOW, max_tokens=0, env={"TERM": "dumb"}) as chat:
            chat.send("go\r")
            chat.wait(lambda: len(chat.screen.rows) > 4, "answer")
            chat.send(CTRL_C)
            chat.wait_for("(stopped; what was said stays in the conversation)")
            chat.wait_prompt(2)

    def test_answers_go_to_a_file(self):
        with open(self.folder / "out", "wb") as out, Chat(self, stdout=out) as chat:
            self.assertEqual(chat.ask("hello"), ">>> hello\n(cut at --max-tokens)\n\n>>>")
            said = chat.saved()[1]["content"]
        self.assertEqual((self.folder / "out").read_text(encoding="utf-8").rstrip("\n"), said.rstrip("\n"))

    def test_a_reader_that_goes_away(self):
        reading, writing = os.pipe()
        with Chat(self, stdout=writing) as chat:
            os.close(writing)
            os.close(reading)
            chat.send("hello\r")
            self.assertEqual(chat.wait_end(), 141)
            self.assertTrue(chat.has_its_settings())


if __name__ == "__main__":
    unittest.main(verbosity=2)
