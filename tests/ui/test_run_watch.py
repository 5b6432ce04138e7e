"""What breaks if this is wrong: lines of a log are lost or shown twice, or a run that is over keeps us busy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quark_tui.core.answer import WrongQuestion
from quark_tui.ui.services import Engine, RunWatch, Sight
from tests.support import runs
from tests.support.waiting import until


@pytest.fixture
def held(tmp_path: Path) -> runs.HeldRun:
    run = runs.start(runs.make_job(tmp_path / "job"))
    yield run
    run.close()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()


def texts(sight: Sight) -> list[str]:
    return [line.text for line in sight.lines]


def ended(watch: RunWatch) -> Sight:
    """The first look that sees the end, with every line that came with it or before."""
    seen: list[Sight] = []

    def over() -> Sight | None:
        seen.append(watch.look())
        return seen[-1] if seen[-1].status.body["liveness"] == "finished" else None

    last = until(over, "the end is seen")
    assert [line for one in seen for line in texts(one)] == ["ended"]
    return last


def test_lines_come_once_and_the_end_is_the_last_look_that_costs_anything(held: runs.HeldRun) -> None:
    watch = Engine(None, {}).watch(str(held.folder))
    first = watch.look()
    assert texts(first) == ["begun"]
    assert first.begun
    assert first.folder == str(held.folder)
    assert first.command is not None
    assert first.command.argv[1] == "-c"
    assert first.status.body["liveness"] == "alive"
    second = watch.look()
    assert second.lines == ()
    assert not second.begun
    held.release(3)
    last = ended(watch)
    assert last.status.body["verdict"] == "failed"
    after = watch.look()
    assert after.lines == ()
    assert watch.look() is after


def test_what_a_running_line_says_is_there_before_it_is_finished(held: runs.HeldRun) -> None:
    watch = Engine(None, {}).watch(str(held.folder))
    watch.look()
    with open(held.folder / "output.log", "ab") as log:
        log.write(b"50%|##  | 1/2\x1b]0;x\x07\rhalf")
    seen = watch.look()
    assert (seen.lines, seen.pending) == ((), "half")


@pytest.mark.parametrize("how", ["cut", "replaced"])
def test_another_log_in_the_same_place_is_read_from_its_beginning(held: runs.HeldRun, how: str) -> None:
    watch = Engine(None, {}).watch(str(held.folder))
    watch.look()
    path = held.folder / "output.log"
    if how == "replaced":
        path.rename(held.folder / "old.log")
        path.write_bytes(b"a new beginning\n")
    else:
        path.write_bytes(b"new\n")
    seen = watch.look()
    assert seen.begun
    assert f"output.log was {how}" in seen.remark
    assert texts(seen) == (["a new beginning"] if how == "replaced" else ["new"])
    assert not watch.look().begun


def test_signals_on_record_are_told(held: runs.HeldRun) -> None:
    watch = Engine(None, {}).watch(str(held.folder))
    record = {"signal": "INT", "sent_at": "2026-01-02T03:04:05Z", "by": "a test"}
    (held.folder / "stops.jsonl").write_text(json.dumps(record) + "\n")
    assert watch.look().stops == ("INT",)


def test_a_folder_that_is_gone_is_a_sentence_and_comes_back(held: runs.HeldRun) -> None:
    watch = Engine(None, {}).watch(str(held.folder))
    watch.look()
    away = held.folder.with_name("away")
    held.folder.rename(away)
    with pytest.raises(WrongQuestion, match="no such path"):
        watch.look()
    away.rename(held.folder)
    assert watch.look().lines == ()


def test_a_damaged_record_still_gives_a_look(held: runs.HeldRun) -> None:
    watch = Engine(None, {}).watch(str(held.folder))
    (held.folder / "run.json").write_text("{")
    seen = watch.look()
    assert seen.command is None
    assert seen.status.body["verdict"] == "unreadable"
    assert texts(seen) == ["begun"]
