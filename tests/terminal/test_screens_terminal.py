"""What breaks if this is wrong: a screen leaves the terminal unusable, lets foreign text act on it, sends what it
cannot show, or fills a slow line."""

from __future__ import annotations

import os
import re
import signal
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from quark_tui.core.job import Job
from quark_tui.core.text import clean
from quark_tui.io import jobs
from quark_tui.io.runs import process
from tests.support.runs import HeldRun, make_job, start
from tests.support.stage import ESCAPES, LONG
from tests.support.terminal import Terminal, foreign

#: What foreign text looks like where it is shown.
SHOWN = clean(ESCAPES)
_ESC, _ENTER, _SIGN = "\x1b", "\r", r"(?:▸|\[>>\]|>)"


@dataclass(frozen=True)
class View:
    """A screen or modal: the scene that it belongs to, the keys that lead to it one after another, each with a pattern
    that is on the screen then."""

    scene: str
    way: tuple[tuple[str, str], ...] = ()


def _rail(name: str) -> str:
    return rf"{_SIGN} {name}\b"


VIEWS = {
    "home": View("home"),
    "filter": View("home", (("/", "filter: words"),)),
    "new job": View("home", (("n", "job folder"),)),
    "environment": View("fresh", (("1", _rail("Environment")),)),
    "whole row": View("fresh", (("1", _rail("Environment")), (_ENTER, "the whole row"))),
    "model": View("fresh", (("2", _rail("Model")),)),
    "plan": View("fresh", (("3", _rail("Plan")),)),
    "edit row": View("fresh", (("3", _rail("Plan")), ("j", f"{_SIGN} global_scheme"), (_ENTER, "reason"))),
    "command": View("fresh", (("4", _rail("Command")),)),
    "approve": View("fresh", (("4", _rail("Command")), ("a", "Run these exact bytes"))),
    "help": View("fresh", (("?", r"[│|] Help "),)),
    "palette": View("fresh", ((":", "Search for"),)),
    "run": View("alive"),
    "search": View("alive", (("/", "any case"),)),
    "stop": View("alive", (("s", "Send INT to this run"),)),
    "run over": View("ended", (("5", "exit status 0"),)),
    "result": View("ended", (("6", _rail("Result")),)),
    "accept": View("ended", (("6", _rail("Result")), ("a", "Accept this result"))),
    "follow-up": View("ended", (("6", _rail("Result")), ("b", "What comes next"))),
}
SCENES = ("home", "fresh", "alive", "ended")
#: Where the program is quitted with ``q`` without closing something first.
_SCREENS = ("home", "environment", "model", "plan", "command", "run", "run over", "result")
_FIRST = {"home": "looked at", "fresh": _rail("Command"), "alive": _rail("Run"), "ended": _rail("Result")}


@pytest.fixture
def staged(own_env: dict[str, str], tmp_path: Path, jobs_root: Path) -> Stagehand:
    folder = Path(os.fsdecode(os.fsencode(jobs_root / "job ") + b"[bold]\x1b]0;t\x1b\\ \xff"))
    (folder / ".quark-tui" / "runs").mkdir(parents=True)
    jobs.write_job(str(folder), Job("ptq", "2026-01-01T00:00:00Z", f"/models/{SHOWN}", f"{folder}/out", None))
    env = {name: value for name, value in own_env.items() if name not in ("COLORTERM", "TMUX", "STY", "LANG")}
    return Stagehand({**env, "LC_ALL": "C.UTF-8"}, jobs_root, folder)


@dataclass(frozen=True)
class Stagehand:
    """Opens scenes; ``root`` holds jobs, ``job`` is one with a hostile name."""

    env: Mapping[str, str]
    root: Path
    job: Path

    @contextmanager
    def open(
        self, scene: str, *options: str, size: tuple[int, int] = (80, 24), env: Mapping[str, str] | None = None
    ) -> Iterator[Terminal]:
        path = self.root if scene == "home" else self.job
        answers = "fresh" if scene == "home" else scene
        argv = [sys.executable, "-m", "tests.support.stage", answers, *options, os.fsdecode(os.fsencode(path))]
        with Terminal(argv, {**self.env, **(env or {})}, *size) as terminal:
            sees(terminal, _FIRST[scene])
            terminal.ready()
            yield terminal


def sees(terminal: Terminal, pattern: str) -> None:
    terminal.until(lambda: re.search(pattern, "\n".join(terminal.display)), pattern)


def go(terminal: Terminal, view: View) -> None:
    for keys, pattern in view.way:
        terminal.press(keys)
        sees(terminal, pattern)
    terminal.settle()


def leave(terminal: Terminal, view: View) -> None:
    """Take away what covers the screen."""
    covering = view.way[-1][1]
    terminal.press(_ESC)
    terminal.until(lambda: not re.search(covering, "\n".join(terminal.display)), f"{covering} is gone")
    terminal.settle()


# The terminal afterwards.


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *((name, signal.SIGTERM) for name in VIEWS),
        *((name, number) for name in (*_SCREENS, "approve", "search") for number in (signal.SIGHUP, signal.SIGINT)),
    ],
)
def test_a_signal_restores_the_terminal_on_every_screen(staged: Stagehand, name: str, number: signal.Signals) -> None:
    with staged.open(VIEWS[name].scene) as terminal:
        go(terminal, VIEWS[name])
        os.kill(terminal.pid, number)
        assert terminal.wait() == 128 + number
        assert terminal.left_whole() == ""
        assert foreign(bytes(terminal.raw)) == []


@pytest.mark.parametrize("name", VIEWS)
def test_a_lost_connection_ends_every_screen(staged: Stagehand, name: str) -> None:
    with staged.open(VIEWS[name].scene) as terminal:
        go(terminal, VIEWS[name])
        terminal.hang_up()
        _, status = os.waitpid(terminal.pid, 0)
        terminal.status = os.waitstatus_to_exitcode(status)
        assert terminal.status == 128 + signal.SIGHUP


@pytest.mark.parametrize("name", VIEWS)
def test_a_defect_of_ours_is_one_sentence_on_every_screen(staged: Stagehand, name: str) -> None:
    with staged.open(VIEWS[name].scene) as terminal:
        go(terminal, VIEWS[name])
        os.kill(terminal.pid, signal.SIGUSR1)
        assert terminal.wait() == 1
        assert terminal.left_whole() == ""
        assert foreign(bytes(terminal.raw)) == []
        said = bytes(terminal.raw).rpartition(b"\x1b[?1006l")[2].decode()
        assert said.startswith("quark-tui: unexpected ZeroDivisionError: [/x][bold]\\x1b]52;") and said.count("\n") == 1
        assert b"Traceback" not in terminal.raw


@pytest.mark.parametrize("name", VIEWS)
def test_q_leaves_every_screen_and_names_what_was_there(staged: Stagehand, name: str) -> None:
    """What covers a screen is closed first; a name that could act on the terminal is printed as it reads."""
    view = VIEWS[name]
    with staged.open(view.scene) as terminal:
        go(terminal, view)
        if name not in _SCREENS:
            leave(terminal, view)
        terminal.press("q")
        assert terminal.wait() == 0
        assert terminal.left_whole() == ""
        assert foreign(bytes(terminal.raw)) == []
        said = bytes(terminal.raw).rpartition(b"\x1b[?1006l")[2].decode()
        assert said.startswith("runs go on") and said.count("\n") == 1
        assert (r"job [bold]\x1b]0;t" in said) == (view.scene != "home")


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeldRun]:
    job = make_job(tmp_path_factory.mktemp("held") / "job")
    jobs.write_job(str(job), Job("ptq", "2026-01-01T00:00:00Z", f"{job}/model", f"{job}/out", None))
    run = start(job)
    yield run
    run.close()


@pytest.mark.parametrize("name", ["run", "stop"])
@pytest.mark.parametrize("manner", ["q", "TERM", "HUP", "INT", "KILL", "USR1", "lost"])
def test_however_the_screen_of_a_run_ends_the_run_does_not(
    own_env: dict[str, str], held: HeldRun, name: str, manner: str
) -> None:
    view, log = VIEWS[name], held.log()
    argv = [sys.executable, "-m", "tests.support.stage", "real", str(held.job)]
    with Terminal(argv, {**own_env, "LC_ALL": "C.UTF-8"}) as terminal:
        sees(terminal, _FIRST["alive"])
        terminal.ready()
        go(terminal, view)
        if manner == "q":
            if view.way:
                leave(terminal, view)
            terminal.press("q")
            assert terminal.wait() == 0
            assert f"quark-tui {held.job}".encode() in terminal.raw.rpartition(b"\x1b")[2]
        elif manner == "lost":
            terminal.hang_up()
            _, status = os.waitpid(terminal.pid, 0)
            terminal.status = os.waitstatus_to_exitcode(status)
            assert terminal.status == 128 + signal.SIGHUP
        else:
            number = getattr(signal, f"SIG{manner}")
            os.kill(terminal.pid, number)
            expected = {"KILL": -signal.SIGKILL, "USR1": 1}.get(manner, 128 + number)
            assert terminal.wait() == expected
        if manner not in ("lost", "KILL"):
            assert terminal.left_whole() == ""
    for who in ("guard", "supervisor", "child"):
        assert process.start_ticks(held.pids[who]) is not None and not process.is_zombie(held.pids[who]), who
    assert held.log() == log and not (held.folder / "stops.jsonl").exists()


# What is sent.


def walk(staged: Stagehand, scene: str, *options: str, env: Mapping[str, str] | None = None) -> tuple[bytes, str]:
    """Every screen and modal of ``scene``, one after another: all bytes, and all that was on the screen."""
    seen = []
    with staged.open(scene, *options, env=env) as terminal:
        for name in (name for name, view in VIEWS.items() if view.scene == scene):
            go(terminal, VIEWS[name])
            seen += terminal.display
            if name not in _SCREENS:
                leave(terminal, VIEWS[name])
        terminal.press("q")
        assert terminal.wait() == 0
        return bytes(terminal.raw), "\n".join(seen)


@pytest.mark.parametrize("scene", SCENES)
def test_foreign_text_is_shown_and_never_obeyed_and_256_colours_are_enough(staged: Stagehand, scene: str) -> None:
    raw, seen = walk(staged, scene)
    assert foreign(raw) == []
    assert raw.count(b"\x1b[?1049l") == 1
    assert r"[/x]" in seen and r"[bold]" in seen and r"\x1b]" in seen
    assert b"8;2;" not in raw and b"8;5;" in raw
    assert b"\x1b[?1000h" in raw


@pytest.mark.parametrize("scene", SCENES)
def test_ascii_is_ascii_on_every_screen(staged: Stagehand, scene: str) -> None:
    raw, seen = walk(staged, scene, "--ascii", "--no-mouse")
    assert _beyond_ascii(raw) == ""
    assert foreign(raw) == []
    assert r"[/x]" in seen
    assert b"?1000h" not in raw and b"?1003h" not in raw, "the mouse is left to the terminal"


@pytest.mark.parametrize("env", [{"LC_ALL": "C"}, {"TERM": "linux"}], ids=str)
def test_a_terminal_that_shows_ascii_gets_ascii(staged: Stagehand, env: dict[str, str]) -> None:
    assert _beyond_ascii(walk(staged, "fresh", env=env)[0]) == ""


def _beyond_ascii(raw: bytes) -> str:
    """The text around the first byte that is not ASCII."""
    at = next((number for number, byte in enumerate(raw) if byte >= 0x80), None)
    return "" if at is None else raw[max(0, at - 60) : at + 20].decode("utf-8", "backslashreplace")


@pytest.mark.parametrize("scene", SCENES)
def test_without_colours_none_is_sent(staged: Stagehand, scene: str) -> None:
    raw, _ = walk(staged, scene, env={"NO_COLOR": "1"})
    for codes in re.findall(rb"\x1b\[([0-9;]*)m", raw):
        assert all(int(code or 0) < 30 or code in (b"39", b"49") for code in codes.split(b";")), codes


def test_an_argument_is_whole_where_it_is_approved(staged: Stagehand) -> None:
    """P-91: however long, and whatever is in it."""
    with staged.open("fresh", size=(80, 60)) as terminal:
        go(terminal, VIEWS["approve"])
        found = (re.match(r".?│  [▸ ] .{22} +(.*?)[ ▁-█]*│", line) for line in terminal.display)
        values = "".join(one[1] for one in found if one)
        assert f"/models/{SHOWN}{LONG}" in values
        assert LONG in values.replace(f"{SHOWN}{LONG}", "")


def test_idle_sends_nothing_on_any_screen_without_a_living_run(staged: Stagehand) -> None:
    """Longer than Home waits between two looks."""
    views = {name: view for name, view in VIEWS.items() if view.scene != "alive"}
    with ExitStack() as stack:
        opened = {}
        for name, view in views.items():
            opened[name] = stack.enter_context(staged.open(view.scene))
            go(opened[name], view)
        for terminal in opened.values():
            terminal.settle()
        looked = threading.Event()
        threading.Timer(6.0, looked.set).start()
        sent = dict.fromkeys(opened, 0)
        while not looked.is_set():
            for name, terminal in opened.items():
                sent[name] += terminal.read(0.01)
    assert {name: count for name, count in sent.items() if count} == {}


# A living run.

_LINES_A_SECOND, _SECONDS = 50, 5.0


@contextmanager
def growing(path: Path) -> Iterator[None]:
    """Fifty lines a second, as a command writes them."""
    done = threading.Event()

    def write() -> None:
        number = 0
        with path.open("a") as file:
            while not done.wait(1 / _LINES_A_SECOND):
                number += 1
                file.write(
                    f"[QUARK-INFO]: line {number}: " + f"calibrating layer {number % 7}, " * (1 + number % 6) + "\n"
                )
                file.flush()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def rate(terminal: Terminal, seconds: float = _SECONDS) -> float:
    """Bytes a second over some seconds."""
    begun, count = time.monotonic(), 0
    while time.monotonic() - begun < seconds:
        count += terminal.read(0.05)
    return count / (time.monotonic() - begun)


def usual_rate(terminal: Terminal) -> float:
    """What most of five spans of two seconds have: a single repaint of a pane is none of it."""
    return statistics.median(rate(terminal, 2.0) for _ in range(5))


def test_a_living_run_keeps_to_its_budget_of_bytes(own_env: dict[str, str], tmp_path: Path) -> None:
    """40 kB a second at 120×40 while a log grows that is followed, 1 kB where it is not, or does not grow."""
    job = make_job(tmp_path / "job")
    jobs.write_job(str(job), Job("ptq", "2026-01-01T00:00:00Z", f"{job}/model", f"{job}/out", None))
    run = start(job)
    try:
        argv = [sys.executable, "-m", "quark_tui", str(job)]
        env = {**own_env, "LC_ALL": "C.UTF-8", "COLORTERM": "truecolor"}
        with Terminal(argv, env, 120, 40) as terminal:
            sees(terminal, _FIRST["alive"])
            terminal.ready()
            terminal.until(lambda: "safe to disconnect" not in "\n".join(terminal.display), "the first word is over")
            assert 0 < usual_rate(terminal) <= 1_000, "only what tells the time changes"
            log = run.folder / "output.log"
            with growing(log):
                sees(terminal, "line 100: ")
                assert 1_000 < rate(terminal) <= 40_000
                terminal.press("\t")
                sees(terminal, "▸ log")
                terminal.press("k" * 3)
                sees(terminal, r"PAUSED \+\d\d+")
                assert usual_rate(terminal) <= 1_000
            terminal.press("q")
            assert terminal.wait() == 0
    finally:
        run.close()


# A terminal that is too small.


@pytest.mark.parametrize("name", [*_SCREENS, "filter", "search"])
def test_too_small_is_said_and_a_larger_one_brings_everything_back(staged: Stagehand, name: str) -> None:
    view = VIEWS[name]
    with staged.open(view.scene) as terminal:
        go(terminal, view)
        before = terminal.display
        terminal.resize(60, 15)
        sees(terminal, "needs 80×24; the terminal is 60×15")
        terminal.settle()
        terminal.resize(80, 24)
        terminal.until(lambda: terminal.display == before, "everything is back")
        terminal.resize(79, 24)
        sees(terminal, "needs 80×24; the terminal is 79×24")
        if name not in _SCREENS:
            terminal.press(_ESC)
            terminal.settle()
        terminal.press("q")
        assert terminal.wait() == 0
        assert terminal.left_whole() == ""


@pytest.mark.parametrize("name", [name for name in VIEWS if name not in (*_SCREENS, "filter", "search")])
def test_a_question_in_a_terminal_that_is_too_small_can_be_closed(staged: Stagehand, name: str) -> None:
    view = VIEWS[name]
    with staged.open(view.scene) as terminal:
        go(terminal, view)
        terminal.resize(60, 15)
        terminal.settle()
        leave(terminal, view)
        sees(terminal, "needs 80×24; the terminal is 60×15")
        terminal.resize(80, 24)
        sees(terminal, _FIRST["home"] if view.scene == "home" else r"\? help   q quit")
        terminal.press("q")
        assert terminal.wait() == 0
