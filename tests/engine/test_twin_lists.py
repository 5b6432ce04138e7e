"""``sessions``, ``paths`` and ``status`` of runs whose command a test can hold."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from quark_tui.io.runs import process
from quark_tui.io.runs.reading import read_run
from tests.support.runs import HeldRun
from tests.support.waiting import until

from .conftest import Inside, Maker, PlainJob, codes


def _row(inside: Inside, path: str, *words: str) -> dict[str, object] | None:
    answer = inside.ask("sessions", *words)
    return next((row for row in answer["sessions"] if row["path"] == path), None)


def test_a_job_is_found_wherever_it_is(planned: PlainJob, inside: Inside) -> None:
    """Known jobs come from the state folder; others from a root, three folders deep."""
    row = _row(inside, str(planned.path))
    assert row is not None and (row["kind"], row["model"], row["verdict"]) == ("ptq", "model", "not_started")
    assert inside.ask("paths")["known_jobs"] == [str(planned.path)]
    for depth, found in ((2, True), (3, False)):
        deep = inside.folder / f"root{depth}" / "/".join("abcd"[:depth])
        deep.mkdir(parents=True)
        shutil.copytree(planned.path, deep / "job")
        listed = _row(inside, str(deep / "job"), "--root", str(inside.folder / f"root{depth}"))
        assert (listed is not None) is found, depth
    shutil.rmtree(planned.path)
    assert inside.ask("paths")["known_jobs"] == [], "a job that is gone is forgotten"


def test_a_foreign_quark_process_is_listed(inside: Inside) -> None:
    """Somebody else's run, started by hand: it is seen by its command line."""
    program = inside.folder / "quark-cli"
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.stdin.read()\n")
    program.chmod(0o755)
    output = str(inside.folder / "theirs")
    argv = [str(program), "torch-llm-ptq", "--model_dir", "/models/Their Model", "--output_dir", output]
    theirs = subprocess.Popen(argv, stdin=subprocess.PIPE)
    try:
        until(lambda: "torch-llm-ptq" in (process.command_line(theirs.pid) or []), "it is that program by now")
        row = _row(inside, output)
        assert row is not None and (row["verdict"], row["liveness"]) == ("running", "alive")
        assert (row["model"], row["pid"]) == ("Their Model", theirs.pid)
    finally:
        theirs.communicate()
    assert _row(inside, output) is None


@pytest.mark.parametrize("output", [None, "relative/out"])
def test_a_foreign_process_without_a_whole_path(inside: Inside, output: str | None) -> None:
    """Every path in an answer is absolute, whatever somebody typed."""
    program = inside.folder / "quark-cli"
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.stdin.read()\n")
    program.chmod(0o755)
    argv = [str(program), "torch-llm-ptq", *(["--output_dir", output] if output else [])]
    theirs = subprocess.Popen(argv, stdin=subprocess.PIPE, cwd=inside.folder)
    try:
        until(lambda: "torch-llm-ptq" in (process.command_line(theirs.pid) or []), "it is that program by now")
        row = _row(inside, str(inside.folder / output) if output else f"/proc/{theirs.pid}")
        assert row is not None and row["pid"] == theirs.pid
    finally:
        theirs.communicate()


def test_a_living_run_everywhere(planned: PlainJob, held: HeldRun, inside: Inside) -> None:
    """The same truth of a job, of its run folder and in the list; a job's own process is not listed twice."""
    for path, scope in ((planned.path, "job"), (held.folder, "run")):
        answer = inside.ask("status", str(path))
        assert (answer["scope"], answer["liveness"], answer["verdict"]) == (scope, "alive", "running")
        assert answer["process"]["pid"] == held.pids["child"] and answer["runs"] == [held.folder.name]
        assert answer["files"] == {"output_log": str(held.folder / "output.log"), "exit": None}
        assert answer["fresh_seconds"] >= 0 and answer["started_at"].endswith("Z")
    row = _row(inside, str(planned.path))
    assert row is not None and row["verdict"] == "running"
    pids = [one.get("pid") for one in inside.ask("sessions")["sessions"]]
    assert held.pids["child"] not in pids, "a job's own process is listed as the job"


def test_status_writes_nothing(planned: PlainJob, held: HeldRun, inside: Inside) -> None:
    def everything() -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in planned.path.rglob("*") if path.name != "gate"}

    before = everything()
    inside.ask("status", str(planned.path))
    inside.ask("sessions")
    inside("stop", str(planned.path), "--json")
    assert everything() == before


def test_the_newest_run_is_meant(planned: PlainJob, inside: Inside) -> None:
    first = planned.start("import sys; sys.exit(3)")
    first.exit()
    first.close()
    second = planned.start("pass")
    second.exit()
    second.close()
    answer = inside.ask("status", str(planned.path), exit=1)
    assert answer["runs"] == sorted([first.folder.name, second.folder.name])
    assert answer["numbers"]["exit_status"]["value"] == 0
    assert inside.ask("status", str(first.folder), exit=1)["numbers"]["exit_status"]["value"] == 3


def test_the_end_is_being_recorded(planned: PlainJob, held: HeldRun, inside: Inside) -> None:
    """Between the child's end and exit.json nothing is claimed that exit.json would then contradict."""
    for name in ("supervisor", "guard"):
        os.kill(held.pids[name], signal.SIGSTOP)
    held.release(5)
    until(lambda: process.is_zombie(held.pids["child"]), "the child has ended and nobody has looked")
    answer = inside.ask("status", str(planned.path))
    assert (answer["liveness"], answer["verdict"]) == ("alive", "running")
    assert "recording" in answer["liveness_evidence"]
    for name in ("supervisor", "guard"):
        os.kill(held.pids[name], signal.SIGCONT)
    assert held.exit()["status"] == 5
    assert inside.ask("status", str(planned.path), exit=1)["verdict"] == "failed"


def test_a_zombie_that_nobody_keeps(planned: PlainJob, held: HeldRun) -> None:
    """Without its keepers an ended process is an ended process, reaped or not."""
    held.kill("guard", "supervisor")
    held.release(0)
    held.gone("child")
    assert read_run(str(held.folder)).liveness == "dead"


def test_stop_of_what_has_no_run(planned: PlainJob, inside: Inside) -> None:
    assert "no run" in inside.wrong("stop", str(planned.path), "--yes")


def test_stop_is_asked_for_each_time(planned: PlainJob, held: HeldRun, inside: Inside) -> None:
    """TERM only after an INT is on record, and the child's end is then ours."""
    assert codes(inside.ask("stop", str(planned.path))) == ["not_sent"]
    assert codes(inside.ask("stop", str(held.folder), "--signal", "KILL", "--yes", exit=1)) == ["int_first"]
    assert not (held.folder / "stops.jsonl").exists()
    sent = inside.ask("stop", str(planned.path), "--yes")
    assert sent["sent"] is True and [target["pid"] for target in sent["targets"]] == [held.pids["child"]]
    assert held.exit()["stopped_by"] == "INT"
    answer = inside.ask("status", str(planned.path), exit=1)
    assert answer["verdict"] == "interrupted"
    record = json.loads((held.folder / "stops.jsonl").read_text())
    assert record["signal"] == "INT" and record["sent_at"].endswith("Z")


def test_a_refused_start_is_told(planned: PlainJob, held: HeldRun, inside: Inside) -> None:
    """A run folder whose command never started says so, and why."""
    other = planned.start("pass")
    other.launcher.communicate()
    answer = inside.ask("status", str(other.folder), exit=1)
    assert (answer["liveness"], answer["verdict"]) == (None, "not_started")
    assert codes(answer, "block") == ["already_running"]


def test_a_bare_folder(inside: Inside, make: Maker, model: Path) -> None:
    """verify needs no job; a model that is not quantized is said to be none."""
    answer = inside.ask("verify", str(model), exit=1)
    assert (answer["verdict"], answer["against"], answer["quantized_modules"]) == ("failed", "config", 0)
    assert answer["expected_modules"] is None
    empty = inside.folder / "empty"
    empty.mkdir()
    assert inside.ask("verify", str(empty), exit=1)["verdict"] == "failed"
    assert "neither" in inside.wrong("status", str(empty))
