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
#: What tells the program of its terminal.
TERMINAL: Mapping[str, str] = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
#: Between two keys of a key line there are three cells or more.
_APART = re.compile(r" {3,}")
#: The lower border of a box; what is below the box may be seen on both sides of it.
_BOTTOM = re.compile("└─+┘")
#: A key at the right end of the status line.
_BESIDE = re.compile(r" [!-~] [a-z]+$")
#: A digest that goes on in a second line.
_DIGEST = re.compile(r"digest +([0-9a-f]{32,64})\s*\n\W*([0-9a-f]*)")
_HALF_A_SCREEN = "\x04"


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

    def offered(self) -> dict[str, str]:
        """Word → key: of the box where one is open, else of the screen, whose status line may offer one at its right
        end. What is blocked is left out."""
        lines = self.terminal.display
        bottom = next((row for row, line in enumerate(lines) if row and _BOTTOM.search(line)), None)
        if bottom is not None:
            line = "".join(lines[bottom - 1].split("│")[1:-1])
        else:
            beside = _BESIDE.search(lines[-2])
            line = f"{lines[-1].removesuffix('ready')}   {beside[0] if beside else ''}"
        pairs = (part.strip().partition(" ") for part in _APART.split(line))
        return {
            word.strip(): key
            for key, _, word in pairs
            if word and (len(key) == 1 or key in _SENT) and not word.endswith("(blocked)")
        }

    def press(self, word: str, seconds: float = 60.0) -> None:
        """Press the key that the key line shows for ``word``, once it shows one."""
        self.terminal.until(lambda: word in self.offered(), f"a key for {word!r} is shown", seconds)
        key = self.offered()[word]
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
    with Terminal([*argv, *words], {**env, **TERMINAL}, *size, cwd=str(cwd)) as terminal:
        yield Person(terminal)


def lose(person: Person) -> int:
    """Hang up; the exit status of the program, minus a signal that ended it."""
    terminal = person.terminal
    terminal.hang_up()
    _, status = os.waitpid(terminal.pid, 0)
    terminal.status = os.waitstatus_to_exitcode(status)
    return terminal.status


def own_cache(prepared: Path, cache: Path) -> Path:
    """A cache folder with the parts of ``prepared`` and without its demonstration jobs."""
    cache.mkdir()
    for name in ("targets", "models", "hf", "torch_extensions", "stamps"):
        (cache / name).symlink_to(prepared / name)
    return cache


def confirm_both(person: Person) -> None:
    """Checkpoints 1 and 2, from the first pane that a new job opens with."""
    person.sees_step("Model", "Checkpoint 1 waits for you")
    person.press("confirm the analysis")
    person.sees_step("Plan", "Checkpoint 2 waits for you")
    person.press("confirm the plan")
    person.sees_step("Command", "Checkpoint 3 waits for you", "nothing was started")


def digest_shown(person: Person) -> str:
    """The digest on the Command pane, which she goes down to; then she is back at the top."""
    pages = 0
    while not (found := _DIGEST.search(person.screen)):
        before = person.screen
        person.type(_HALF_A_SCREEN)
        person.terminal.until(lambda b=before: person.screen != b, "the list has moved")  # type: ignore[misc]
        person.terminal.settle()  # half a repaint may show neither the line that goes nor the one that comes
        pages += 1
        assert pages < 50, f"no digest is shown:\n{person.screen}"
    person.type("g")
    return found[1] + found[2]


def ask_to_run(person: Person) -> None:
    """Open the question of Checkpoint 3: Cancel has the focus, and running is not offered before all was seen."""
    person.press("approve…")
    person.sees_in_box("Run these exact bytes?", "[ Cancel ]", "have not been on the screen yet", "esc Cancel")
    assert "Run it" not in person.offered(), person.screen


def read_and_run(person: Person) -> None:
    """Read everything that the question shows and answer it with its own key."""
    read_on(person)
    person.sees_in_box("nothing has been created, downloaded or started")
    person.press("Run it")


def read_on(person: Person) -> None:
    """Half a screen at a time, until no line is left that has not been on the screen."""
    while "have not been on the screen" in person.screen:
        before = person.screen
        person.type(_HALF_A_SCREEN)
        person.terminal.until(lambda was=before: person.screen != was, "the list has moved")  # type: ignore[misc]
        person.terminal.settle()


def approve(person: Person) -> None:
    """Checkpoint 3, to the Run pane."""
    ask_to_run(person)
    read_and_run(person)
    person.sees_step("Run")


def calibrating(person: Person, total: int) -> int:
    """Wait until some batches of ``total`` have been calibrated, by the task tree; how many."""
    counted = re.compile(rf"\b([1-9]\d*) of {total}\b")
    person.terminal.until(lambda: counted.search(person.screen), f"some of {total} batches are calibrated", 300)
    found = counted.search(person.screen)
    assert found is not None
    return int(found[1])


def accept(person: Person) -> str:
    """From an ended run to its acceptance; the digest as far as the question shows it."""
    person.press("result", seconds=300)
    person.sees_step("Result", "✓ VERIFIED  against the plan")
    person.press("accept")
    person.sees_in_box("Accept this result?", "[ Cancel ]", "digest  ")
    found = re.search(r"digest  ((?:[0-9a-f]{4} )+)", person.screen)
    assert found is not None, person.screen
    read_on(person)
    person.press("Accept it")
    person.sees("✓ accepted 20", "via screen")
    assert "accept" not in person.offered(), "what was accepted is not accepted again"
    return found[1].replace(" ", "")


def leave(person: Person) -> str:
    """Quit; what is printed below the screen that was."""
    person.press("quit")
    assert person.terminal.wait() == 0
    assert person.terminal.left_whole() == ""
    return bytes(person.terminal.raw).rpartition(b"\x1b")[2].partition(b"l")[2].decode()
