"""What breaks if this is wrong: Home lies about the jobs, loses the cursor, or a name of a job draws on the screen."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from textual.pilot import Pilot

from quark_tui.core.answer import WrongQuestion
from quark_tui.ui.app import QuarkTui
from quark_tui.ui.listing import Listing
from quark_tui.ui.screens.home import HomeScreen
from quark_tui.ui.views.home import layout
from quark_tui.ui.widgets.row_list import RowList
from tests.support.results import Fake, until

from .conftest import HOSTILE, four, frame, is_snapshot, listing, session, told

Home = Callable[[Listing], QuarkTui]
SIZES = [(80, 24), (120, 40)]


def bottom(app: QuarkTui) -> str:
    return frame(app).splitlines()[-1]


async def ready(pilot: Pilot[None]) -> None:
    """Bounded by the number of turns of the event loop, not by time."""
    for _ in range(10_000):
        if bottom(pilot.app).endswith(" ready"):  # type: ignore[arg-type]
            return
        await pilot.pause()
    raise AssertionError(frame(pilot.app))  # type: ignore[arg-type]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", ["empty", "four-jobs"])
async def test_home_looks_as_it_should(home: Home, name: str, size: tuple[int, int]) -> None:
    app = home(listing(four() if name == "four-jobs" else []))
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        await until(pilot, lambda: name == "empty" or "its lock is held" in frame(app), "the truths of the first row")
        is_snapshot(f"home-{name}-{size[0]}x{size[1]}", frame(app), app)


async def test_a_hostile_name_is_visible_text_and_nothing_else(home: Home) -> None:
    app = home(listing([session("x", "failed", model=HOSTILE, stage=HOSTILE, path=HOSTILE, kind=HOSTILE)]))
    async with app.run_test(size=(200, 30)) as pilot:
        await ready(pilot)
        text = frame(app)
        assert r"[/x]\x1b]52;c;AA\x07[bold]" in text
        assert not {char for char in text if ord(char) < 32} - {"\n"}


async def test_keys_move_the_cursor_and_a_new_look_keeps_it(home: Home) -> None:
    rows = [session(f"job-{number:02}", "not_started") for number in range(40)]
    seen = [listing(rows)]
    app = QuarkTui(Fake(listing=lambda: seen[-1], truths=told), "host")
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        jobs = app.screen.query_one(RowList)
        for key, place in (
            ("j", 1),
            ("down", 2),
            ("k", 1),
            ("up", 0),
            ("up", 0),
            ("G", 39),
            ("j", 39),
            ("pageup", None),
        ):
            await pilot.press(key)
            assert place is None or jobs.cursor == place
            assert jobs.current is not None
            marked = [line for line in frame(app).splitlines() if line.startswith(" ▸ ")]
            assert len(marked) == 1
            assert jobs.current.removeprefix("/jobs/") in marked[0]
        kept = jobs.current
        seen.append(listing([session("another", "running"), *rows[5:]]))
        await pilot.press("r")
        await ready(pilot)
        assert jobs.current == kept
        assert "another" in frame(app) or jobs.scroll_offset.y > 0
        seen.append(listing([]))
        await pilot.press("r")
        await ready(pilot)
        assert "No jobs yet." in frame(app)
        seen.append(listing(rows))
        await pilot.press("r")
        await ready(pilot)
        await pilot.press("j")
        assert jobs.cursor == 1


async def test_what_the_command_line_named_gets_the_cursor_once(home: Home) -> None:
    app = home(listing(four(), selected="/jobs/SmolLM2-135M"))
    async with app.run_test() as pilot:
        await ready(pilot)
        jobs = app.screen.query_one(RowList)
        assert jobs.cursor == 1
        await pilot.press("G", "r")
        await ready(pilot)
        assert jobs.cursor == 3


async def test_it_is_not_ready_before_the_disk_was_seen_and_the_disk_is_not_seen_by_the_event_loop() -> None:
    gate, threads = threading.Event(), []

    def read() -> Listing:
        threads.append(threading.current_thread())
        gate.wait(30)
        return listing(four())

    app = QuarkTui(Fake(listing=read), "host")
    async with app.run_test() as pilot:
        await pilot.press("j", "k")
        assert bottom(app).endswith(" looking")
        gate.set()
        await ready(pilot)
        assert threads
        assert threads[0] is not threading.main_thread()


async def test_problems_and_hints_are_said(home: Home) -> None:
    app = home(listing([], hint="a hint [/b]", problems=("first [red]", "second")))
    async with app.run_test() as pilot:
        await ready(pilot)
        assert "first [red]  (+1 more)" in frame(app)
        assert "a hint [/b]" in frame(app)


async def test_a_small_terminal_gets_a_word_and_a_large_one_the_list_back(home: Home) -> None:
    app = home(listing(four()))
    async with app.run_test(size=(79, 24)) as pilot:
        await ready(pilot)
        assert "80×24" in frame(app)
        assert "SmolLM2" not in frame(app)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert "SmolLM2" in frame(app)
        await pilot.press("j")
        assert app.screen.query_one(RowList).cursor == 1


async def test_ctrl_c_says_how_to_leave_and_stays(home: Home) -> None:
    app = home(listing([]))
    async with app.run_test() as pilot:
        await ready(pilot)
        await pilot.press("ctrl+c")
        assert "q leaves quark-tui" in frame(app)
        assert app.is_running
        await pilot.press("q")
    assert app.return_code == 0


async def test_a_second_look_that_sees_the_same_paints_only_the_last_word(home: Home) -> None:
    app = home(listing(four()))
    async with app.run_test() as pilot:
        await ready(pilot)
        jobs = app.screen.query_one(RowList)
        painted: list[object] = []
        original = jobs.render_line
        jobs.render_line = lambda y: painted.append(y) or original(y)  # type: ignore[method-assign,func-returns-value]
        await pilot.press("r")
        await ready(pilot)
        assert painted == []


@given(st.integers(0, 400), st.booleans())
def test_columns_fit_in_any_width(cells: int, ascii_only: bool) -> None:
    columns = [column.cells for column in layout(cells, ascii_only)]
    assert min(columns) >= 0
    if cells >= 77:
        assert sum(columns) + 2 * len(columns) <= cells


async def test_the_strip_keeps_the_four_truths_of_the_row_apart(home: Home) -> None:
    app = home(listing(four()))
    async with app.run_test() as pilot:
        await ready(pilot)
        await until(pilot, lambda: "31 of 128" in frame(app), "the running job's truths")
        text = frame(app)
        assert "verdict running · alive · changed 4 s ago · calibration 31 of 128" in text
        assert "its lock is held · pid 31842" in text
        await pilot.press("j")
        await until(pilot, lambda: "verdict succeeded" in frame(app), "the other job's truths")
        assert "31 of 128" not in frame(app)


async def test_a_filter_leaves_rows_that_hold_every_word_and_escape_takes_it_away(home: Home) -> None:
    app = home(listing(four()))
    async with app.run_test() as pilot:
        await ready(pilot)
        await pilot.press("slash", *"qwen unk")
        assert [entry.key for entry in app.screen.query_one(RowList).entries] == [
            "/jobs/Qwen3-30B-A3B-Instruct-2507-and-more"
        ]
        assert "1 shown by the filter" in frame(app)
        await pilot.press("enter", "escape")
        assert len(app.screen.query_one(RowList).entries) == 4
        await pilot.press("k")
        assert app.screen.query_one(RowList).cursor == 2


async def test_a_process_without_a_record_is_not_opened(home: Home) -> None:
    app = QuarkTui(
        Fake(listing=listing([session("x", "running", path="/proc/4")]), truths=WrongQuestion("no job")), "host"
    )
    async with app.run_test() as pilot:
        await ready(pilot)
        await pilot.press("enter")
        assert "it has no record to open" in frame(app)
        assert isinstance(app.screen, HomeScreen)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.text(), st.text(), st.one_of(st.none(), st.text()))))
async def test_any_text_of_a_job_is_one_line_of_the_right_width(jobs: list[tuple[Any, Any, Any]]) -> None:
    rows = [session("x", word, model=model, stage=stage, path=f"/{n}") for n, (word, model, stage) in enumerate(jobs)]
    app = QuarkTui(Fake(listing=listing(rows), truths=WrongQuestion("no such job")), "host")
    async with app.run_test() as pilot:
        await ready(pilot)
        text = frame(app)
        assert len(text.splitlines()) == 24
        assert not {char for char in text if ord(char) < 32 or 127 <= ord(char) < 160} - {"\n"}


async def test_a_list_that_was_empty_takes_the_keys_when_it_fills_and_the_hidden_filter_never_does(home: Home) -> None:
    """What breaks if this is wrong: no key answers after the first job was made, not even the one that quits."""
    seen = [listing([])]
    app = QuarkTui(Fake(listing=lambda: seen[-1], truths=told), "host")
    async with app.run_test() as pilot:
        await ready(pilot)
        assert app.focused is None
        await pilot.press("n")
        await until(pilot, lambda: len(app.screen_stack) == 2, "the form")
        seen.append(listing(four()))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen) and "SmolLM2" in frame(app), "the list")
        await until(pilot, lambda: isinstance(app.focused, RowList), "the list has the keys")
        await pilot.press("j")
        assert app.screen.query_one(RowList).cursor == 1
        await pilot.press("q")
    assert app.return_code == 0
