"""A real pseudo-terminal with an emulator on the other end, for tests and benchmarks."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyte

#: What Textual may send: CSI sequences, and ESC with one letter. OSC, DCS, APC, PM and SOS are never its own here.
ESCAPES = re.compile(rb"\x1b(\[[0-?]*[ -/]*[@-~]|[^\[])")
# Sequences that the emulator does not know and would show as text.
_UNKNOWN = re.compile(rb"\x1b\[[<>=][0-9;]*[a-zA-Z]|\x1b\[\?[0-9;]*\$p")
# The final letters of the sequences that Textual draws, asks and restores with.
_FINALS = b"HJKmhlupqrtnSABCDcys"
_ENTER, _LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"


class Terminal:
    """``argv`` in a pty of ``columns`` × ``rows``. ``raw`` is every byte that it sent."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        columns: int = 80,
        rows: int = 24,
        cwd: str | None = None,
    ) -> None:
        self.raw = bytearray()
        self.emulator = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.emulator)
        self._pending = b""
        self.status: int | None = None
        # A second descriptor of the terminal itself keeps its settings readable after the child has left.
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = self.attributes()
        with warnings.catch_warnings():
            # From 3.12 on a fork beside threads is warned of; this child does nothing but exec.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
                for descriptor in (0, 1, 2):
                    os.dup2(self.slave, descriptor)
                os.closerange(3, 256)
                for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
                    signal.signal(number, signal.SIG_DFL)
                if cwd:
                    os.chdir(cwd)
                os.execvpe(argv[0], list(argv), dict(env))
            finally:
                os._exit(127)

    def attributes(self) -> list[Any]:
        return termios.tcgetattr(self.slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        for descriptor in (self.master, self.slave):
            if descriptor >= 0:
                os.close(descriptor)

    def read(self, seconds: float = 0.02) -> int:
        """Take what is there, waiting at most ``seconds``; the number of bytes."""
        if not select.select([self.master], [], [], seconds)[0]:
            return 0
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return 0
        self.raw += data
        held = self._pending + data
        # An escape sequence may be cut by the read: its beginning waits for the rest.
        start = held.rfind(b"\x1b", -24)
        cut = start if start >= 0 and not ESCAPES.match(held, start) else len(held)
        self._pending = held[cut:]
        self._stream.feed(_UNKNOWN.sub(b"", held[:cut]))
        return len(data)

    @property
    def display(self) -> list[str]:
        return [line.rstrip() for line in self.emulator.display]

    def until(self, condition: Callable[[], object], what: str, seconds: float = 30.0) -> None:
        """Read until ``condition`` holds; fails, naming ``what`` and showing the screen, when it never does."""
        deadline = time.monotonic() + seconds
        while not condition():
            self.read()
            if time.monotonic() > deadline:
                raise AssertionError(f"waited in vain: {what}\n" + "\n".join(self.display))

    def ready(self) -> None:
        """Wait until the last word of the bottom line is ``ready``."""
        self.until(lambda: self.display[-1].endswith(" ready"), "the bottom line says ready")

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def settle(self) -> None:
        """Take everything until nothing comes for longer than some frames take."""
        while self.read(0.3):
            pass

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size, of which the kernel tells its processes."""
        self.emulator.resize(rows, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait(self, seconds: float = 30.0) -> int:
        """Read until the process has ended; its exit status, or minus the signal."""

        def ended() -> bool:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            return self.status is not None

        self.until(ended, "the process ends", seconds)
        while self.read(0):
            pass
        assert self.status is not None
        return self.status

    def hang_up(self) -> None:
        """Close the terminal under the process, as a lost connection does."""
        os.close(self.slave)
        os.close(self.master)
        self.master = self.slave = -1

    def left_whole(self) -> str:
        """ "" when the terminal is as it was found; else what is not."""
        raw = bytes(self.raw)
        wrong = []
        if self.attributes() != self.before:
            wrong.append("line settings")
        if raw.count(_ENTER) != raw.count(_LEAVE):
            wrong.append("alternate screen")
        for mode in ("1000", "1002", "1003", "1006", "1015", "2004", "1004", "2048"):
            on, off = raw.rfind(f"\x1b[?{mode}h".encode()), raw.rfind(f"\x1b[?{mode}l".encode())
            if on > off:
                wrong.append(f"mode {mode}")
        if raw.rfind(b"\x1b[?25l") > raw.rfind(b"\x1b[?25h"):
            wrong.append("cursor")
        if len(re.findall(rb"\x1b\[>\d+u", raw)) > len(re.findall(rb"\x1b\[<\d*u", raw)):
            wrong.append("keyboard protocol")
        return ", ".join(wrong)


def foreign(raw: bytes) -> list[bytes]:
    """The sequences in ``raw`` that the program never sends of itself, and bells."""
    found = [b"\x07"] * raw.count(b"\x07")
    for one in ESCAPES.finditer(raw):
        body = one[1]
        if body[:1] in (b"]", b"P", b"X", b"^", b"_") or (body[-1:] not in _FINALS and len(body) > 1):
            found.append(raw[max(0, one.start() - 20) : one.end() + 20])
    return found
