"""Somebody at a terminal who knows nothing but what the screen says: she presses the keys that the key lines show."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.support.twin import PROGRAM
from tests.support.terminal import Terminal

#: What a key line writes → what a terminal sends.
_SENT: Mapping[str, str] = {"↵": "\r", "esc": "\x1b", "tab": "\t", "space": " "}
#: The last line of a screen, or the last one in the box of a modal: keys stand three cells apart.
_APART = re.compile(r" {3,}")
_FRAME = "│┃▌▐║"


class Person:
    """One look after the other at ``terminal``; ``walked`` is every key that she pressed, with its word."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.walked: list[tuple[str, str]] = []

    @property
    def screen(self) -> str:
        return "\n".join(self.terminal.display)

    @property
    def status_line(self) -> str:
        return self.terminal.display[-2].strip()

    def sees(self, *words: str, seconds: float = 60.0) -> str:
        """Wait until all ``words`` are on the screen and nothing is outstanding; the screen then."""
        self.terminal.until(lambda: self._complete and all(word in self.screen for word in words), str(words), seconds)
        return self.screen

    def sees_in_box(self, *words: str, seconds: float = 60.0) -> str:
        """The same for a modal, whose screen below it is painted as it was."""
        self.terminal.until(lambda: all(word in self.screen for word in words), str(words), seconds)
        return self.screen

    def sees_step(self, name: str, *words: str, seconds: float = 60.0) -> str:
        """Wait until the rail marks ``name`` as the shown step, and for ``words``."""
        return self.sees(f"▸ {name}", *words, seconds=seconds)

    @property
    def _complete(self) -> bool:
        return self.terminal.display[-1].endswith(" ready")

    def keys(self) -> dict[str, str]:
        """Word → key of the lines that show keys, the topmost box first; what is blocked is not there."""
        found: dict[str, str] = {}
        for line in reversed(self.terminal.display):
            for part in _APART.split(line.strip().strip(_FRAME).strip()):
                key, _, word = part.strip().partition(" ")
                if word and (len(key) == 1 or key in _SENT) and not word.endswith("(blocked)"):
                    found.setdefault(word.strip(), key)
        return found

    def press(self, word: str) -> None:
        """Press the key that the screen shows for ``word``; fails when it shows none."""
        keys = self.keys()
        assert word in keys, f"no key is shown for {word!r}:\n{self.screen}"
        key = keys[word]
        self.walked.append((key, word))
        self.terminal.press(_SENT.get(key, key))

    def type(self, keys: str) -> None:
        """Keys of moving, which every list understands and the help tells."""
        self.terminal.press(keys)


@contextmanager
def at_terminal(
    env: Mapping[str, str], cwd: Path, *words: str, argv: Sequence[str] = PROGRAM, size: tuple[int, int] = (80, 24)
) -> Iterator[Person]:
    """The program in a terminal of its own; what is left of the program is ended at the end, runs are not touched."""
    told = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    with Terminal([*argv, *words], {**env, **told}, *size, cwd=str(cwd)) as terminal:
        yield Person(terminal)


def lose(person: Person) -> int:
    """Hang up; the exit status of the program, minus a signal that ended it."""
    terminal = person.terminal
    terminal.hang_up()
    _, status = os.waitpid(terminal.pid, 0)
    terminal.status = os.waitstatus_to_exitcode(status)
    return terminal.status
