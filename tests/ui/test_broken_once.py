"""What a hostile reader broke: each test is of a kind of mistake, not of the one place where it was met."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.finding import block
from quark_tui.ui.actions import ACTIONS
from quark_tui.ui.modals.approve import ApproveModal
from quark_tui.ui.modals.edit_row import EditRowModal
from quark_tui.ui.modals.new_job import NewJobModal
from quark_tui.ui.modals.whole import WholeModal
from quark_tui.ui.screens.review import CommandScreen, PlanScreen
from quark_tui.ui.text import safe
from quark_tui.ui.views import command as command_view
from quark_tui.ui.views import run as run_view
from quark_tui.ui.widgets.detail_list import DetailList
from quark_tui.ui.widgets.field import SafeInput
from quark_tui.ui.widgets.row_list import RowList
from tests.support import reviews
from tests.support.results import until
from tests.support.terminal import Terminal

from .conftest import frame
from .test_review_screens import Desk, app_on, at

PATTERNS = tuple(f"model.layers.{number}.mlp.experts.{number}.gate_proj" for number in range(400))
LONG = replace(reviews.COMMAND, argv=(*reviews.COMMAND.argv, "--exclude_layers", *PATTERNS))


def long_command() -> Answer:
    answer = reviews.command()
    return replace(answer, body={**answer.body, "commands": [LONG.to_json()]})


# What is decided on is whole.


@pytest.mark.parametrize("width", [40, 76, 180])
def test_what_is_approved_is_shown_to_its_last_argument(width: int) -> None:
    """P-92: an argument of any length stands on the screen whole, and is copied whole."""
    rows = command_view.rows(long_command(), False)
    told = "".join(text.strip() for row in command_view.whole(rows, width) for text, _ in row.entry.cells)
    for pattern in PATTERNS:
        assert pattern in told.replace(" ", "")
    assert any(row.copy.endswith(PATTERNS[-1]) for row in rows)
    assert any(text.endswith(PATTERNS[-1]) for text, _ in run_view.command_detail(LONG, "/run"))


def test_what_is_cut_says_so_and_no_credential_is_cut_in_two() -> None:
    assert safe("x" * 5000).endswith("x…")
    for before in range(1900, 2001, 5):
        assert "hunter2" not in safe(f"{'x' * before} https://me:hunter2hunter2@example.org/{'y' * 3000}")


@pytest.mark.parametrize("width", [120, 200])
async def test_lines_that_are_wrapped_anew_have_to_be_seen_again(width: int) -> None:
    """P-92: what was seen at one width says nothing of the lines at another."""
    app = app_on(Desk(2))
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, 4, 2)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, ApproveModal), "the approval")
        shown = app.screen.query_one("#command", RowList)
        await pilot.press(*["ctrl+d"] * 8)
        await until(pilot, lambda: not shown.unseen(len(shown.entries)), "all of it was in view")
        await pilot.press("g")
        await pilot.resize_terminal(width, 24)
        await until(pilot, lambda: app.screen.size.width == width, "the width")
        await pilot.pause()
        assert isinstance(app.screen, ApproveModal)
        hidden = len(shown.entries) - shown.size.height
        assert hidden > 0
        assert shown.unseen(len(shown.entries)) == hidden


# One answer to one question.


@pytest.mark.parametrize(
    ("opens", "does"), [("command.approve", "approve.run"), ("result.accept", "accept.yes"), ("run.stop", "stop.send")]
)
def test_the_key_that_opens_a_question_never_answers_it(opens: str, does: str) -> None:
    """P-92: a key that is held down opens a question and does nothing more."""
    assert not set(ACTIONS[opens].keys) & set(ACTIONS[does].keys)


async def test_answers_that_were_on_their_way_take_no_other_screen_away() -> None:
    desk = Desk(1)
    app = app_on(desk)
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, 3, 1)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, EditRowModal), "the line")
        modal = app.screen
        line = modal.query_one("#value", Input)
        for _ in range(5):
            line.post_message(Input.Submitted(line, line.value, None))
        await until(pilot, lambda: isinstance(app.screen, PlanScreen), "back")
        await pilot.pause()
        assert len(app.screen_stack) == 2, app.screen_stack
        assert [call[0] for call in desk.calls] == ["change"]


async def test_a_question_that_is_answered_below_the_palette_closes_with_it() -> None:
    app = app_on(Desk(2))
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, 4, 2)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, ApproveModal), "the approval")
        modal = app.screen
        assert isinstance(modal, ApproveModal)
        app.action_command_palette()
        await until(pilot, lambda: app.screen is not modal, "the palette")
        await pilot.pause()
        modal.dismiss(None)
        await until(pilot, lambda: isinstance(app.screen, CommandScreen), "the pane")
        await until(pilot, lambda: frame(app).splitlines()[-1].endswith(" ready"), "ready")


async def test_double_clicks_that_were_on_their_way_open_one_thing() -> None:
    app = app_on(Desk(2))
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, 4, 2)
        rows = app.screen.query_one(DetailList)
        for _ in range(40):
            rows.list.post_message(RowList.Chosen())
        await until(pilot, lambda: isinstance(app.screen, WholeModal), "the row")
        await pilot.pause()
        assert len(app.screen_stack) == 3


# The status line says how it is now.


async def test_what_was_said_while_it_was_started_is_over_when_it_was_refused() -> None:
    """P-92: the refusal is what is told."""
    gate = threading.Event()
    refused = block("digest_differs", "was c3 → is e5", "", "look again")

    class Slow(Desk):
        def approve(self, job: str, digest: str) -> Answer:
            gate.wait(30)
            return Answer("run", {"run_id": None, "run_folder": None, "pid": None, "via": None}, (refused,), 1)

    app = app_on(Slow(2))
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, 4, 2)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, ApproveModal), "the approval")
        await pilot.pause()
        await pilot.press("r")
        assert "have not been on the screen yet" in frame(app)
        await pilot.press(*["ctrl+d"] * 6)
        await until(pilot, lambda: "have not been on the screen yet" not in frame(app), "the number is not stale")
        await pilot.press("r", "q")
        assert "it is being started" in frame(app)
        gate.set()
        await until(pilot, lambda: "was c3 → is e5" in frame(app), "the difference")
        assert "nothing was started" in frame(app)
        assert "it is being started" not in frame(app)


@pytest.mark.parametrize("step", [1, 2, 3, 4])
async def test_a_look_that_failed_stays_said_and_what_was_seen_before_is_gone(step: int) -> None:
    desk = Desk(2)
    app = app_on(desk)
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, step, 2)
        desk._answers["review"] = WrongQuestion("quark-tui: /m [/x]: config.json is no JSON")
        await pilot.press("r")
        await until(pilot, lambda: "config.json is no JSON" in frame(app).splitlines()[-2], "the reason")
        await pilot.press("j", "T", "j")
        await pilot.press("enter")
        assert "config.json is no JSON" in frame(app).splitlines()[-2]
        assert "waits for you" not in frame(app)
        assert reviews.DIGEST[:16] not in frame(app)
        assert "fp8" not in frame(app)


async def test_a_look_is_not_begun_while_another_one_is_under_way() -> None:
    gate = threading.Event()
    looks: list[str] = []

    class Slow(Desk):
        def review(self, job: str) -> Any:
            looks.append(job)
            if len(looks) > 1:
                gate.wait(30)
            return super().review(job)

    app = app_on(Slow(2))
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, 4, 2)
        await pilot.press(*"rrrrr")
        await until(pilot, lambda: len(looks) == 2, "the look")
        gate.set()
        await until(pilot, lambda: frame(app).splitlines()[-1].endswith(" ready"), "ready")
        assert len(looks) == 2


# What is typed is taken whole or not at all.


async def test_a_value_that_is_too_long_is_neither_shown_cut_nor_taken_cut() -> None:
    patterns = ["lm_head", *(f"model.layers.{number}.mlp.down_proj" for number in range(400))]
    row = {"key": "exclude_layers", "value": patterns, "default": ["lm_head"], "reason": "", "changed": True}
    given: list[object] = []
    app = app_on(Desk(1))
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, 3, 1)
        app.push_screen(EditRowModal(row), given.append)
        await until(pilot, lambda: isinstance(app.screen, EditRowModal), "the line")
        await pilot.pause()
        line = app.screen.query_one("#value", SafeInput)
        assert line.value == ""
        assert "too long to be changed here" in frame(app)
        line.value = "x" * 5000
        await pilot.press("enter")
        await until(pilot, lambda: "characters are not taken here" in frame(app), "the reason")
        assert given == []
        line.value = ""
        await pilot.press("enter")
        await until(pilot, lambda: given, "it is unchanged")
        (pair,) = given
        assert isinstance(pair, tuple)
        assert patterns[-1] in pair[0]


async def test_a_path_that_is_too_long_makes_no_job() -> None:
    desk = Desk(new=AssertionError("nothing is made"), interpreter="/usr/bin/python3")
    app = app_on(desk)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app.push_screen(NewJobModal(desk, "/jobs/x", "/models/y"))  # type: ignore[arg-type]
        await until(pilot, lambda: isinstance(app.screen, NewJobModal), "the form")
        await pilot.pause()
        line = app.screen.query_one("#model", SafeInput)
        line.value = "/" + "x" * 5000
        line.focus()
        await pilot.press("enter")
        await until(pilot, lambda: "characters are not taken here" in frame(app), "the reason")


# No byte and no moment ends it.


def test_bytes_that_are_no_utf8_end_nothing(tmp_path: Path) -> None:
    """P-91: a key of a Latin-1 terminal, an old mouse report, a torn character: nothing of it is a traceback."""
    env = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "HOME": str(tmp_path)}
    env |= {f"QUARK_TUI_{name}": str(tmp_path / name) for name in ("STATE", "CONFIG")}
    with Terminal([sys.executable, "-m", "quark_tui"], env, cwd=str(tmp_path)) as terminal:
        terminal.ready()
        for data in (b"\xff", b"\xe9", b"\x9b31m", b"\x1b[M \xf0\x28", b"\xc3", b"\xf0\x9f", bytes(range(128, 256))):
            os.write(terminal.master, data)
        terminal.until(lambda: terminal.read(0.2) == 0, "it was taken")
        terminal.press("\x1b")
        terminal.until(lambda: terminal.read(0.3) == 0, "the end of what began")
        terminal.press("?")
        terminal.until(lambda: "Help" in "\n".join(terminal.display), "the help")
        terminal.press("q")
        terminal.until(lambda: "Help" not in "\n".join(terminal.display), "the list")
        terminal.press("q")
        assert terminal.wait() == 0
        assert terminal.left_whole() == ""
        assert b"Traceback" not in terminal.raw


def test_a_terminal_that_goes_without_a_signal_ends_it(tmp_path: Path) -> None:
    """P-91: as after setsid or in a container; no core is taken for ever."""
    env = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "HOME": str(tmp_path)}
    env |= {f"QUARK_TUI_{name}": str(tmp_path / name) for name in ("STATE", "CONFIG")}
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    argv = [sys.executable, "-m", "quark_tui"]
    with subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True) as child:
        try:
            os.close(slave)
            seen = b""
            while b"ready" not in seen:
                seen += os.read(master, 65536)
            os.close(master)
            assert child.wait(60) == 128 + signal.SIGHUP
        finally:
            child.kill()


async def test_what_opens_while_the_program_ends_is_no_defect() -> None:
    app = app_on(Desk(2))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        app.exit()
        app._handle_exception(ValueError("no node matches"))
    assert app.crash is None


async def test_a_screen_below_another_one_opens_nothing_and_is_the_one_that_is_left() -> None:
    """What comes back while something else is open: the screen that asked goes on, not the one that is read."""
    gate = threading.Event()

    class Slow(Desk):
        def confirm(self, job: str, checkpoint: str, digest: str, corrections: object) -> Answer:
            gate.wait(30)
            return super().confirm(job, checkpoint, digest, corrections)

    app = app_on(Slow(1))
    async with app.run_test(size=(80, 24)) as pilot:
        await at(pilot, 3, 1)
        await pilot.press("c", "question_mark")
        await until(pilot, lambda: isinstance(app.screen, WholeModal), "the help")
        below = app.screen_stack[-2]
        assert isinstance(below, PlanScreen)
        assert not below.on_top
        gate.set()
        await until(pilot, lambda: isinstance(app.screen, CommandScreen), "the next step")
        assert len(app.screen_stack) == 2, app.screen_stack
