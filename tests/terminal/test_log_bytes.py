"""What breaks if this is wrong: following a log floods a slow connection, or a log writes into the terminal itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quark_tui.ui.widgets.log_view import BATCH_SECONDS
from tests.support.terminal import ESCAPES, Terminal

# One step of what a screen does, for each key: n reads on, a searches and follows again.
_PROGRAM = """
import sys
from textual.app import App
from textual.widgets import Static
from quark_tui.engine.progress import LogReader
from quark_tui.io.paths import data_folder
from quark_tui.ui import theme
from quark_tui.ui.widgets.log_view import LogView

class Program(App):
    def __init__(self):
        super().__init__()
        self.animation_level = "none"
        self.reader = LogReader(sys.argv[1])
        for one in theme.built_in(data_folder("themes")):
            self.register_theme(one)
        self.theme = "quark-dark"
    def get_theme_variable_defaults(self):
        return dict(theme.DEFAULTS)
    def compose(self):
        yield LogView()
        yield Static("ready")
    def _set_pointer_shape(self, shape):
        pass
    def on_key(self, event):
        view = self.query_one(LogView)
        if event.key == "n":
            self.reader.read()
            view.show(*self.reader.take())
        elif event.key == "a":
            view.search("QUARK", regex=False, case=True)
            view.follow()
        elif event.key == "q":
            self.exit()

Program().run()
"""
#: Bytes a second that following may cost, and lines a second that are followed.
_BUDGET = 40_000
_LINES = 50
_PER_BATCH = round(_LINES * BATCH_SECONDS)
_LEVELS = ("INFO", "INFO", "WARNING", "INFO", "ERROR")
_FINALS = b"HJKmhlupqrtnSABCDcys"


class Log:
    """A growing output.log; every line tells its number, some are longer than any screen."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "output.log"
        self.count = 0

    def grow(self, lines: int) -> str:
        """Append ``lines`` lines; the words that only the last of them holds."""
        with self.path.open("a") as file:
            for _ in range(lines):
                self.count += 1
                level = _LEVELS[self.count % len(_LEVELS)]
                text = f"calibrating the layer {self.count % 7}, " * (1 + self.count % 6)
                file.write(f"\x1b[32m[QUARK-{level}]: line {self.count}: {text}\x1b[0m\n")
        return f": line {self.count}: "


@contextmanager
def opened(env: dict[str, str], folder: Path, size: tuple[int, int], colours: str = "truecolor") -> Iterator[Terminal]:
    program = folder / "program.py"
    program.write_text(_PROGRAM)
    env = {**env, "COLORTERM": colours, "TEXTUAL_FPS": "30"}
    with Terminal([sys.executable, str(program), str(folder)], env, *size) as terminal:
        terminal.until(lambda: terminal.display[-1].startswith("ready"), "the program is ready")
        settle(terminal)
        yield terminal
        terminal.press("q")
        assert terminal.wait() == 0
        assert terminal.left_whole() == ""


def settle(terminal: Terminal) -> None:
    while terminal.read(0.3):
        pass


def sent(terminal: Terminal, keys: str, words: str = "") -> int:
    """The bytes that come for ``keys``; ``words`` are on the screen then."""
    before = len(terminal.raw)
    terminal.press(keys)
    terminal.until(lambda: words in "\n".join(terminal.display), f"the screen shows {words}")
    settle(terminal)
    return len(terminal.raw) - before


@pytest.mark.parametrize("colours", ["truecolor", ""])
@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=str)
def test_following_keeps_to_its_budget_of_bytes(
    own_env: dict[str, str], tmp_path: Path, size: tuple[int, int], colours: str
) -> None:
    log = Log(tmp_path)
    words = log.grow(200)
    with opened(own_env, tmp_path, size, colours) as terminal:
        sent(terminal, "n", words)
        budget = _BUDGET * BATCH_SECONDS * size[1] / 40
        for _ in range(3):
            assert 0 < sent(terminal, "n", log.grow(_PER_BATCH)) <= budget
        sent(terminal, "a")
        assert 0 < sent(terminal, "n", log.grow(_PER_BATCH)) <= budget


def test_paused_nothing_is_sent_and_a_moving_bar_costs_its_line(own_env: dict[str, str], tmp_path: Path) -> None:
    log = Log(tmp_path)
    words = log.grow(200)
    with opened(own_env, tmp_path, (120, 40)) as terminal:
        sent(terminal, "n", words)
        for percent in (10, 20, 30):
            with log.path.open("a") as file:
                file.write(f"\rcalibrating {percent}%")
            bar = sent(terminal, "n", f"calibrating {percent}%")
            assert percent == 10 or bar < 3 * 120
        assert sent(terminal, "k") < 2 * 3 * 120
        sent(terminal, "k" * 50)
        for _ in range(3):
            log.grow(_PER_BATCH)
            assert sent(terminal, "n") == 0
        assert sent(terminal, "G", f": line {log.count}: ")


def test_what_a_log_holds_never_acts_on_the_terminal(own_env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "output.log").write_bytes(
        b"\x1b]52;c;QUJD\x07\x1b]0;title\x1b\\\x1b[2J\x1bP0;1|17/17\x1b\\\x1b[?1049lgone\n"
        b"\xc2\x9b2J \xc2\x9d52;c;QUJD\xc2\x9c nul\0 bell\x07 \x0e\x0f\x7f\n"
        + "\u202eRTL שלום\n".encode()
        + "漢字e\u0301 ".encode() * 60
        + b"\nlast: https://me:S3CRET@host/\n\x1b]52;c;"
    )
    with opened(own_env, tmp_path, (80, 24)) as terminal:
        sent(terminal, "n", "last: https://***@host/")
        sent(terminal, "kllhg")
        assert [line[-1] for line in terminal.display if "漢字" in line] == ["…"]
        raw = bytes(terminal.raw)
    for found in ESCAPES.finditer(raw):
        assert found[1][:1] not in (b"]", b"P", b"X", b"^", b"_"), found[0]
        assert found[1][-1:] in _FINALS or len(found[1]) == 1, found[0]
    assert b"\x07" not in raw
    assert b"S3CRET" not in raw
    assert b"\xc2\x9b" not in raw
    assert raw.count(b"\x1b[?1049l") == 0
