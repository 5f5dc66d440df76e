"""A program on a pseudo-terminal, and what its user sees.

The screen knows what the chat may send and nothing else: any other control byte or sequence stands
in `unknown`, so a test can tell that none got through."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
import unicodedata

SEQUENCE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")


def width(character):
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class Screen:
    """Rows of cells; they never scroll away. A full row wraps with the next character."""

    def __init__(self, columns):
        self.columns = columns
        self.rows = [[]]
        self.row = self.column = 0
        self.unknown = []
        self.styles = 0
        self.pending = ""
        self.bracketed_paste = False

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.rows)

    def feed(self, text):
        text = self.pending + text
        self.pending = ""
        pos = 0
        while pos < len(text):
            if text[pos] != "\x1b":
                self.put(text[pos])
                pos += 1
            elif match := SEQUENCE.match(text, pos):
                self.obey(match[1], match[2])
                pos = match.end()
            elif re.fullmatch(r"\x1b(\[[?0-9;]*)?", text[pos:]):
                self.pending = text[pos:]  # the rest comes with the next read
                return
            else:
                self.unknown.append(text[pos:pos + 8])
                pos += 1

    def put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.line_feed()
        elif character == "\t":
            self.column = min(self.column // 8 * 8 + 8, self.columns - 1)
        elif ord(character) < 0x20 or 0x7F <= ord(character) <= 0x9F:
            self.unknown.append(character)
        else:
            self.put_cell(character)

    def put_cell(self, character):
        cells = width(character)
        row = self.rows[self.row]
        if cells == 0:
            if row:
                row[-1] += character
            return
        if self.column + cells > self.columns:
            self.column = 0
            self.line_feed()
            row = self.rows[self.row]
        row.extend(" " * (self.column + cells - len(row)))
        row[self.column] = character
        if cells == 2:
            row[self.column + 1] = ""
        self.column += cells

    def line_feed(self):
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append([])

    def obey(self, parameters, name):
        number = int(parameters) if parameters.isdigit() else None
        self.column = min(self.column, self.columns - 1)
        if name == "A":
            self.row = max(self.row - (number or 1), 0)
        elif name == "C":
            self.column = min(self.column + (number or 1), self.columns - 1)
        elif name == "J" and number is None:
            del self.rows[self.row + 1:]
            del self.rows[self.row][self.column:]
        elif name == "K" and number is None:
            del self.rows[self.row][self.column:]
        elif name == "m":
            self.styles += 1
        elif parameters == "?2004":
            self.bracketed_paste = name == "h"
        else:
            self.unknown.append(f"ESC [ {parameters} {name}")

    def resize(self, columns):
        """Folds the rows as terminals do; the cursor stays on its character."""
        rows, cursor = [], None
        for i, row in enumerate(self.rows):
            pieces = [row[at:at + columns] for at in range(0, max(len(row), 1), columns)]
            if i == self.row:
                cursor = (len(rows) + self.column // columns, self.column % columns)
                pieces.extend([] for _ in range(self.column // columns + 1 - len(pieces)))
            rows.extend(pieces)
        self.rows, (self.row, self.column), self.columns = rows, cursor, columns


class Terminal:
    """Context manager: runs `command` with its standard streams on a pseudo-terminal. `stdout` may
    be another file. Every wait ends: with an AssertionError that shows the screen."""

    def __init__(self, command, env, columns=80, rows=24, stdout=None, timeout=60):
        self.timeout = timeout
        self.screen = Screen(columns)
        self.raw = b""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.master, self.slave = pty.openpty()
        self.set_size(columns, rows)
        self.settings = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            command, env=env, stdin=self.slave, stdout=stdout or self.slave, stderr=self.slave,
            preexec_fn=self.take_terminal)

    def take_terminal(self):
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.hang_up()
        os.close(self.slave)

    def set_size(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns, rows):
        self.screen.resize(columns)
        self.set_size(columns, rows)

    def hang_up(self):
        if self.master >= 0:
            os.close(self.master)
            self.master = -1

    def send(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        while data:  # a terminal takes some 4 kB at a time
            self.read(0)
            data = data[os.write(self.master, data[:1024]):]

    def read(self, timeout):
        """Takes what has come within `timeout` seconds; False for nothing."""
        if not select.select([self.master], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.raw += data
        self.screen.feed(self.decoder.decode(data))
        return bool(data)

    def wait(self, condition, what):
        deadline = time.monotonic() + self.timeout
        while not condition():
            left = deadline - time.monotonic()
            assert left > 0, f"no {what} within {self.timeout} s; the screen:\n{self.screen.text()}"
            if not self.read(min(left, 0.1)) and self.process.poll() is not None and not self.read(0):
                assert condition(), f"no {what}, and the program ended; the screen:\n{self.screen.text()}"

    def wait_for(self, text):
        """Until the screen shows it."""
        self.wait(lambda: text in self.screen.text(), repr(text))

    def wait_end(self):
        """The exit code, or minus the signal."""
        self.wait(lambda: self.process.poll() is not None, "end of the program")
        while self.read(0):
            pass
        return self.process.returncode

    def has_its_settings(self):
        return termios.tcgetattr(self.slave) == self.settings

    def signal(self, number):
        self.process.send_signal(number)


