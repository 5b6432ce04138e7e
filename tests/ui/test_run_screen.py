"""What breaks if this is wrong: the screen lies about a run, loses lines of its log, or stops what nobody meant."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from quark_tui.core.answer import Answer, WrongQuestion
from quark_tui.core.finding import Finding
from quark_tui.core.logtext import Line
from quark_tui.ui.actions import ACTIONS
from quark_tui.ui.app import QuarkTui
from quark_tui.ui.job import JobView
from quark_tui.ui.listing import Listing
from quark_tui.ui.modals.stop import StopModal
from quark_tui.ui.modals.whole import WholeModal
from quark_tui.ui.screens import run as run_screen
from quark_tui.ui.screens.home import HomeScreen
from quark_tui.ui.screens.run import RunScreen
from quark_tui.ui.services import Sight
from quark_tui.ui.widgets.log_view import LogView
from quark_tui.ui.widgets.task_tree import TaskTree
from tests.support.sights import BAR, CALIBRATING, FOLDER, JOB, LOADING, again, failed, lines_of, sight, verified

from .conftest import HOSTILE, frame, is_snapshot

SIZES = [(80, 24), (120, 40)]


class Watch:
    """Gives what a test has put up: once with its lines, afterwards as a look that saw nothing new."""

    def __init__(self) -> None:
        self.waiting: list[Sight | Exception] = []
        self.last: Sight | Exception | None = None
        self.looks = 0

    def look(self) -> Sight:
        self.looks += 1
        assert threading.current_thread() is not threading.main_thread()
        if self.waiting:
            self.last = self.waiting.pop(0)
            if isinstance(self.last, Sight):
                return self.last
        if isinstance(self.last, Exception):
            raise self.last
        assert self.last is not None
        return again(self.last)


class Fake:
    """Services of which the run screen uses three; each question about a stop is written down."""

    def __init__(self) -> None:
        self.watched = Watch()
        self.asked: list[tuple[str, str, bool]] = []
        self.answer: dict[str, Any] = {}
        self.findings: tuple[Finding, ...] = ()

    def listing(self) -> Listing:
        return Listing()

    def watch(self, path: str) -> Watch:
        assert path == JOB
        return self.watched

    def stop(self, path: str, signal: str, yes: bool) -> Answer:
        self.asked.append((path, signal, yes))
        body = {
            "signal": signal,
            "targets": [{"pid": 31842, "command": f"quark-cli {HOSTILE}"}],
            "remains": [{"path": f"{JOB}/out/{HOSTILE}", "size": 12}],
            "sent": yes,
            "next": "status tells whether it was heeded",
            **self.answer,
        }
        return Answer("stop", body, self.findings)

    def verify(self, path: str) -> Answer:
        raise WrongQuestion("not here")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Opened:
    """The run screen of a job, with what is behind it."""

    def __init__(self, pilot: Pilot[None], fake: Fake, clock: Clock) -> None:
        self.pilot, self.fake, self.clock = pilot, fake, clock

    @property
    def app(self) -> QuarkTui:
        assert isinstance(self.pilot.app, QuarkTui)
        return self.pilot.app

    @property
    def screen(self) -> RunScreen:
        return next(one for one in self.app.screen_stack if isinstance(one, RunScreen))

    @property
    def text(self) -> str:
        return frame(self.app)

    @property
    def status(self) -> str:
        return self.text.splitlines()[-2]

    @property
    def tree(self) -> TaskTree:
        return self.screen.query_one(TaskTree)

    @property
    def log(self) -> LogView:
        return self.screen.query_one(LogView)

    async def until(self, condition: Callable[[], object], what: str) -> None:
        """Bounded by the number of turns of the event loop, not by time."""
        for _ in range(1500):
            await self.pilot.pause()
            if condition():
                return
            await self.pilot.pause(0.002)
        raise AssertionError(f"waited in vain: {what}\n{self.text}")

    async def ready(self) -> None:
        await self.until(lambda: self.text.splitlines()[-1].endswith(" ready"), "ready")

    async def settled(self) -> None:
        """Until the screen stays as it is over some turns of the event loop."""
        seen: list[str] = []

        def still() -> bool:
            seen.append(self.text)
            return len(seen) > 20 and len(set(seen[-20:])) == 1

        await self.until(still, "nothing changes any more")

    async def see(self, seen: Sight | Exception) -> None:
        """Have the looker see ``seen``, and the screen take it."""
        self.fake.watched.waiting.append(seen)
        await self.look()
        await self.until(lambda: not self.fake.watched.waiting, "the look is made")
        await self.look()

    async def look(self) -> None:
        """One look more, taken by the screen."""
        before = self.fake.watched.looks
        self.screen._looker.look()
        await self.until(lambda: self.fake.watched.looks > before and self.screen._taken, "a look")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("QUARK_TUI_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("TMUX", raising=False)
    clock = Clock()
    monkeypatch.setattr(run_screen, "clock", clock)

    @asynccontextmanager
    async def open_it(first: Sight | Exception, size: tuple[int, int] = (80, 24), path: str = JOB) -> Any:
        fake = Fake()
        fake.watched.waiting.append(first)
        app = QuarkTui(fake, "gpu-box-7")  # type: ignore[arg-type]
        async with app.run_test(size=size) as pilot:
            app.open(JobView(path, "SmolLM2-135M"), 5)
            shown = Opened(pilot, fake, clock)
            await shown.until(lambda: isinstance(app.screen, RunScreen), "the screen opens")
            await shown.ready()
            yield shown

    return open_it


def many(count: int, start: int = 0) -> bytes:
    return b"".join(b"[QUARK-INFO]: line %d\n" % number for number in range(start, start + count))


# How it looks.


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_running(opened: Any, size: tuple[int, int]) -> None:
    async with opened(sight(CALIBRATING + many(30) + BAR), size) as shown:
        assert "safe to disconnect; back to it with: quark-tui /jobs/demo" in shown.status
        shown.clock.now += 9
        await shown.look()
        is_snapshot(f"run-running-{size[0]}x{size[1]}", shown.text, shown.pilot.app)


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_paused_while_searching(opened: Any, size: tuple[int, int]) -> None:
    async with opened(sight(CALIBRATING + many(60)), size) as shown:
        await shown.pilot.press("tab", "slash", *"line 1", "enter")
        await shown.see(replace(again(sight(CALIBRATING)), lines=lines_of(many(123, 60))[0]))
        shown.clock.now += 9
        await shown.look()
        await shown.pilot.press("n")
        is_snapshot(f"run-search-{size[0]}x{size[1]}", shown.text)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(("name", "made"), [("failed", failed), ("verified", verified)])
async def test_ended(opened: Any, size: tuple[int, int], name: str, made: Callable[[], Sight]) -> None:
    async with opened(made(), size) as shown:
        is_snapshot(f"run-{name}-{size[0]}x{size[1]}", shown.text)


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_question_before_a_stop(opened: Any, size: tuple[int, int]) -> None:
    async with opened(sight(CALIBRATING), size) as shown:
        await shown.pilot.press("s")
        await shown.until(lambda: isinstance(shown.app.screen, StopModal), "the question")
        await shown.settled()
        is_snapshot(f"run-stop-{size[0]}x{size[1]}", shown.text)


# What it says.


async def test_from_loading_to_verified(opened: Any) -> None:
    async with opened(sight(LOADING)) as shown:
        assert shown.tree.current == "load.tokenizer"
        assert "-abc123 · pid 31842" in shown.text
        assert "started 2026-01-02T03:04:05Z" in shown.text
        assert "for 2 min 3 s" in shown.text
        await shown.see(sight(CALIBRATING + BAR))
        assert shown.tree.current == "quantize.calibrate"
        shown.clock.now += 9
        await shown.look()
        assert "alive" in shown.status
        assert "changed 4 s ago" in shown.status
        assert "Calibrate 31 of 128" in shown.status
        assert "running" in shown.status
        assert shown.status.endswith("pid 31842")
        await shown.see(verified())
        assert "succeeded · exit status 0 · after 1 min 1 s · peak memory 1.4 GB" in shown.text
        assert "v result" in shown.text.splitlines()[-1]
        assert "finished" in shown.status
        assert "safe to disconnect" not in shown.text
        assert shown.tree.current == "accept"


async def test_time_goes_on_between_looks_and_a_disk_that_does_not_answer_is_told(opened: Any) -> None:
    async with opened(sight(LOADING)) as shown:
        shown.clock.now += 9
        await shown.look()
        shown.clock.now += 3
        shown.screen.paint()
        assert "changed 7 s ago" in shown.status
        assert "for 2 min 6 s" in shown.text
        shown.clock.now += 30
        shown.screen.paint()
        assert "no answer from the disk for 33 s" in shown.status


async def test_a_killed_run(opened: Any) -> None:
    async with opened(sight(LOADING)) as shown:
        await shown.see(sight(LOADING, liveness="finished", verdict="failed", signal=9))
        assert "✗ failed · signal 9 (KILL)" in shown.text
        assert "✗ failed" in shown.status


async def test_a_record_that_cannot_be_read(opened: Any) -> None:
    broken = Finding("high", "run_unreadable", "run.json: [/x] is no JSON", FOLDER, "the log is still there")
    seen = sight(liveness="unknown", verdict="unreadable", findings=(broken,), tasks=[], process=None, started_at=None)
    async with opened(replace(seen, command=None)) as shown:
        assert "unreadable" in shown.text
        assert "high: run.json: [/x] is no JSON" in shown.text
        assert "unknown whether it runs" in shown.status
        await shown.pilot.press("c")
        assert "the command is not known" in shown.status
        await shown.pilot.press("s")
        assert "stop it on the host that it started on" in shown.status


@pytest.mark.parametrize(
    "trouble", [WrongQuestion("quark-tui: /jobs/demo: no such path"), PermissionError(13, "no", JOB), KeyError("[/x]")]
)
async def test_what_cannot_be_looked_at_is_said_and_the_screen_stays(opened: Any, trouble: Exception) -> None:
    async with opened(sight(CALIBRATING)) as shown:
        await shown.see(trouble)
        await shown.until(lambda: "cannot be looked at now" in shown.status, "the sentence")
        assert "looked for again" in shown.text
        assert "a scale is [/odd]" in shown.text
        await shown.see(sight(CALIBRATING))
        shown.clock.now += 9
        await shown.look()
        assert "cannot be looked at" not in shown.text
        assert "alive" in shown.status


async def test_a_run_that_never_could_be_looked_at_still_opens(opened: Any) -> None:
    async with opened(WrongQuestion("quark-tui: /jobs/demo: no such path")) as shown:
        assert "/jobs/demo: no such path" in shown.text
        for key in ("f", "z", "tab", "c", "s", "v", "n", "enter", "y"):
            await shown.pilot.press(key)
        assert isinstance(shown.app.screen, RunScreen)


async def test_another_run_that_was_started_elsewhere_is_picked_up(opened: Any) -> None:
    async with opened(failed()) as shown:
        await shown.pilot.press("g")
        other = replace(sight(LOADING, folder=f"{FOLDER}2"), begun=True)
        await shown.see(other)
        assert "another run was started" in shown.status
        assert shown.tree.current == "load.tokenizer"
        assert "out of memory" not in shown.text
        shown.clock.now += 9
        await shown.look()
        assert "alive" in shown.status


async def test_a_log_that_was_cut_is_shown_anew_and_said(opened: Any) -> None:
    async with opened(sight(CALIBRATING)) as shown:
        await shown.see(replace(sight(LOADING), begun=True, remark="output.log was cut"))
        assert "output.log was cut" in shown.status
        assert "a scale is" not in shown.text


async def test_foreign_text_is_text_everywhere(opened: Any) -> None:
    task = {
        "key": HOSTILE, "title": HOSTILE, "state": HOSTILE, "detail": HOSTILE, "reason": HOSTILE, "from": HOSTILE,
        "progress": {"done": 1, "total": None, "unit": HOSTILE}, "children": [],
    }  # fmt: skip
    seen = sight(
        HOSTILE.encode(), verdict=HOSTILE, tasks=[task, task], liveness_evidence=HOSTILE, started_at=HOSTILE,
        findings=(Finding("high", HOSTILE, HOSTILE, HOSTILE, HOSTILE),), process={"pid": HOSTILE},
    )  # fmt: skip
    command = replace(seen.command, argv=(HOSTILE, f"--{HOSTILE}"), cwd=HOSTILE, env_set={HOSTILE: HOSTILE})
    hostile = replace(seen, command=command, folder=f"/{HOSTILE}", stops=(HOSTILE,), log_problem=HOSTILE)
    for size in SIZES:
        async with opened(hostile, size) as shown:
            for key in ("enter", "escape", "G", "enter", "escape", "tab", "enter", "escape", "c", "escape", "y", "s"):
                await shown.pilot.press(key)
                await shown.pilot.pause()
                text = shown.text
                assert len(text.splitlines()) == size[1]
                assert not {char for char in text if ord(char) < 32 or 127 <= ord(char) < 160} - {"\n"}
                assert "\u202e" not in text


# What costs bytes.


def painted(widget: Any, into: list[str]) -> None:
    original = widget.refresh

    def refresh(*regions: Any, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Any:
        into.append(widget.id or "")
        return original(*regions, repaint=repaint, layout=layout, recompose=recompose)

    widget.refresh = refresh


async def test_a_look_that_saw_the_same_paints_nothing_and_a_second_paints_two_lines(opened: Any) -> None:
    async with opened(sight(CALIBRATING + BAR), (120, 40)) as shown:
        shown.clock.now += 9
        await shown.look()
        seen: list[str] = []
        for widget in shown.screen.query("*"):
            painted(widget, seen)
        for _ in range(3):
            await shown.look()
        await shown.pilot.pause()
        assert seen == []
        shown.clock.now += 1
        shown.screen.paint()
        await shown.pilot.pause()
        assert set(seen) == {"run-for", "status"}


async def test_below_a_modal_nothing_is_painted_and_afterwards_everything_is_there(opened: Any) -> None:
    async with opened(sight(CALIBRATING)) as shown:
        await shown.pilot.press("enter")
        await shown.until(lambda: isinstance(shown.app.screen, WholeModal), "the modal")
        screen, seen = shown.screen, []
        for widget in screen.query("*"):
            painted(widget, seen)
        shown.fake.watched.waiting.append(replace(sight(CALIBRATING + BAR), lines=(Line("came below", "", 9),)))
        screen._looker.look()
        await shown.until(lambda: screen._looker._asked.empty(), "the looker was asked")
        shown.clock.now += 1
        screen.paint()
        assert seen == []
        await shown.pilot.press("escape")
        await shown.until(lambda: "came below" in shown.text and "31 of 128" in shown.text, "what came meanwhile")


async def test_a_run_that_is_over_ticks_no_more(opened: Any) -> None:
    over = sight(CALIBRATING, liveness="finished", verdict="failed", exit_status=1, scope="run")
    async with opened(sight(CALIBRATING, scope="run")) as shown:
        assert shown.screen._ticks._active.is_set()
        await shown.see(over)
        assert not shown.screen._ticks._active.is_set()
        assert shown.screen._pace is None


async def test_a_screen_that_is_behind_is_given_nothing_and_loses_nothing(opened: Any) -> None:
    async with opened(sight(CALIBRATING)) as shown:
        screen, watched = shown.screen, shown.fake.watched
        await shown.look()
        screen._taken = False  # as while a slow terminal holds the event loop
        before = watched.looks
        watched.waiting.append(replace(sight(), lines=(Line("kept for later", "", 9),)))
        screen._looker.look()
        await shown.until(lambda: screen._looker._asked.empty(), "the looker was asked")
        assert watched.looks == before
        screen._taken = True
        await shown.look()
        await shown.until(lambda: "kept for later" in shown.text, "the line")


# What a person does.


async def test_the_cursor_and_what_is_folded_stay_by_key_once_a_person_moved(opened: Any) -> None:
    async with opened(sight(LOADING)) as shown:
        await shown.pilot.press("g", "j", "j", "j", "j")
        assert shown.tree.current == "load"
        await shown.pilot.press("space")
        assert "load.model" not in [one.key for one in shown.tree.entries]
        await shown.see(sight(CALIBRATING + BAR))
        assert shown.tree.current == "load"
        assert "load.model" not in [one.key for one in shown.tree.entries]
        await shown.pilot.press("l")
        assert "load.model" in [one.key for one in shown.tree.entries]
        await shown.pilot.press("l")
        assert shown.tree.current == "load.import"
        await shown.pilot.press("h")
        assert shown.tree.current == "load"
        await shown.see(sight(CALIBRATING + BAR + b"\n"))
        assert "load.model" in [one.key for one in shown.tree.entries]


async def test_enter_shows_a_task_or_a_line_whole(opened: Any) -> None:
    long = b"[QUARK-INFO]: " + b"long [/x] " * 30 + b"end\n"
    async with opened(sight(CALIBRATING + long)) as shown:
        await shown.pilot.press("enter")
        assert isinstance(shown.app.screen, WholeModal)
        await shown.until(lambda: "known from the log alone" in shown.text, "where it is known from")
        await shown.pilot.press("escape", "tab", "enter")
        await shown.until(lambda: "end" in shown.text and "of output.log" in shown.text, "the whole line")
        await shown.pilot.press("escape", "c")
        await shown.until(lambda: "--x=[/b]" in shown.text and "CUDA_VISIBLE_DEVICES" in shown.text, "the command")


async def test_zoom_gives_a_pane_the_whole_width_and_takes_it_back(opened: Any) -> None:
    async with opened(sight(CALIBRATING)) as shown:
        shown.clock.now += 9
        await shown.look()
        both = shown.text
        await shown.pilot.press("z")
        assert shown.tree.region.width >= 79
        assert not shown.log.region.width
        await shown.pilot.press("tab")
        assert shown.log.region.width >= 79
        assert shown.app.focused is shown.log
        await shown.pilot.press("z", "tab")
        await shown.pilot.pause()
        assert shown.text == both


async def test_searching(opened: Any) -> None:
    async with opened(sight(many(60))) as shown:
        await shown.pilot.press("n")
        assert "/ searches the log" in shown.status
        await shown.pilot.press("slash")
        assert "ctrl+r text" in shown.text
        assert "ctrl+l any case" in shown.text
        await shown.pilot.press("ctrl+r", "ctrl+l")
        assert "ctrl+r regex" in shown.text
        assert "ctrl+l exact case" in shown.text
        await shown.pilot.press(*"(line", "enter")
        assert "no regular expression" in shown.status
        assert isinstance(shown.app.focused, Input)
        await shown.pilot.press("ctrl+u", *"line 1.$", "enter")
        await shown.until(lambda: "10 of 10" in shown.text, "the count")
        assert "PAUSED" in shown.text
        assert shown.app.focused is shown.log
        await shown.pilot.press("n")
        await shown.until(lambda: "1 of 10" in shown.text, "the first again")
        await shown.pilot.press("N", "N")
        await shown.until(lambda: "9 of 10" in shown.text, "two back")
        await shown.pilot.press("f")
        assert "FOLLOW" in shown.text
        await shown.pilot.press("slash")
        assert shown.screen.query_one(Input).value == "line 1.$"
        await shown.pilot.press("escape")
        assert isinstance(shown.app.screen, RunScreen)
        assert shown.app.focused is shown.log


async def test_letters_typed_into_a_search_do_nothing_else(opened: Any) -> None:
    async with opened(sight(CALIBRATING)) as shown:
        await shown.pilot.press("slash", *"qsHv1zf?")
        assert shown.screen.query_one(Input).value == "qsHv1zf?"
        assert isinstance(shown.app.screen, RunScreen)
        assert shown.fake.asked == []


async def test_leaving_touches_nothing(opened: Any) -> None:
    async with opened(sight(CALIBRATING)) as shown:
        await shown.pilot.press("escape")
        await shown.until(lambda: isinstance(shown.app.screen, HomeScreen), "home")
        assert shown.fake.asked == []


async def test_what_is_copied_is_what_the_cursor_is_on(opened: Any) -> None:
    async with opened(sight(CALIBRATING)) as shown:
        assert "Calibrate" in shown.screen.copy_text()
        await shown.pilot.press("tab")
        assert shown.screen.copy_text() == "[QUARK-WARNING]: a scale is [/odd]"


async def test_every_key_does_something_that_is_seen_or_says_why_not(opened: Any) -> None:
    for name in RunScreen.IDS:
        if name in ("app.quit", "app.palette", "app.help", "app.theme", "step.1", "step.2", "step.3", "step.4"):
            continue
        async with opened(sight(CALIBRATING + many(40))) as shown:
            await shown.pilot.press("tab", "k", "k")
            before = shown.text
            await shown.pilot.press(ACTIONS[name].keys[0])
            await shown.until(lambda before=before, shown=shown: shown.text != before, f"{name} is seen")


async def test_the_key_line_names_keys_that_exist(opened: Any) -> None:
    async with opened(sight(CALIBRATING)) as shown:
        line = shown.text.splitlines()[-1]
        offered = {one.shown_key for one in shown.screen.offered()}
        named = [part.split(" ")[0] for part in line.removesuffix("ready").split("   ") if part.strip()]
        assert {one for one in (part.strip() for part in named) if one} <= offered
        assert "? help" in line
        assert "q quit" in line


# Stopping.


async def question(shown: Opened) -> None:
    await shown.pilot.press("s")
    await shown.until(lambda: isinstance(shown.app.screen, StopModal), "the question")


@pytest.mark.parametrize("key", ["enter", "escape", "q"])
async def test_cancel_has_the_focus_of_a_stop(opened: Any, key: str) -> None:
    async with opened(sight(CALIBRATING)) as shown:
        await question(shown)
        await shown.pilot.press(key)
        await shown.until(lambda: isinstance(shown.app.screen, RunScreen), "back")
        assert shown.fake.asked == [(FOLDER, "INT", False)]


async def test_a_signal_is_sent_once_and_what_came_of_it_is_shown(opened: Any) -> None:
    sent = Finding("info", "stop_sent", "INT was sent 1 s ago")
    deaf = Finding("medium", "stop_not_heeded", "INT was sent 12 s ago and is not heeded")
    async with opened(sight(CALIBRATING)) as shown:
        await question(shown)
        await shown.pilot.press("S")
        await shown.until(lambda: "whether it is heeded is shown here" in shown.status, "it was sent")
        await shown.pilot.press("s")
        assert "INT was sent just now" in shown.status
        assert shown.fake.asked == [(FOLDER, "INT", False), (FOLDER, "INT", True)]
        assert isinstance(shown.app.screen, RunScreen)
        shown.clock.now += 11
        await shown.pilot.press("G")
        await shown.see(sight(CALIBRATING, findings=(sent,), stops=("INT",)))
        assert "INT was sent 1 s ago" in shown.status
        await shown.pilot.press("s")
        assert "wait whether it is heeded" in shown.status
        await shown.see(sight(CALIBRATING, findings=(deaf,), stops=("INT",)))
        await shown.pilot.press("s")
        await shown.until(lambda: isinstance(shown.app.screen, StopModal), "the question")
        assert shown.fake.asked[-1] == (FOLDER, "TERM", False)
        await shown.pilot.press("escape")
        shown.clock.now += 9
        await shown.look()
        assert "is not heeded" in shown.status
        await shown.see(sight(CALIBRATING, liveness="finished", verdict="interrupted", signal=2, stopped_by="INT"))
        assert "! interrupted · signal 2 (INT)" in shown.text


async def test_what_cannot_be_stopped_says_why(opened: Any) -> None:
    async with opened(failed()) as shown:
        await shown.pilot.press("s")
        assert "nothing runs" in shown.status
        await shown.see(sight(CALIBRATING))
        shown.fake.findings = (Finding("block", "process_unknown", "which process it is cannot be read"),)
        shown.fake.answer = {"targets": [], "next": "find the process by hand"}
        await question(shown)
        await shown.pilot.press("S")
        assert isinstance(shown.app.screen, StopModal)
        await shown.until(lambda: "which process it is cannot be read" in shown.text, "the reason")
        assert [yes for _, _, yes in shown.fake.asked] == [False]


async def test_a_run_that_ended_before_the_signal_came(opened: Any) -> None:
    async with opened(sight(CALIBRATING)) as shown:
        await question(shown)
        shown.fake.answer = {"sent": False, "next": "it had ended before the signal came"}
        await shown.pilot.press("S")
        await shown.until(lambda: "it had ended before the signal came" in shown.status, "the reason")
