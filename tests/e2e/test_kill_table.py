"""The kill table with the stock quark-cli: every pair of processes, killed in the middle of calibration."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.support.job import Job
from tests.e2e.support.launcher import launch
from tests.e2e.support.twin import codes, task

#: Long enough for the kill to fall into calibration: some ten seconds of it on one thread.
LONG = ("global_scheme=fp8", "device_strategy=cpu", "num_calib_data=512", "seq_len=96")


@pytest.mark.parametrize(
    "names", list(itertools.combinations(["launcher", "guard", "supervisor", "child"], 2)), ids="+".join
)
def test_any_two_killed_in_the_middle_of_calibration(
    names: tuple[str, str], make_job: Callable[[Path], Job], tiny_llama: Path
) -> None:
    """No run is lost or doubled, and its verdict is that of the table, whichever two are killed at once."""
    job = make_job(tiny_llama)
    job.ready(sets=LONG)
    launched = launch(job)
    try:
        job.calibrating()
        assert job.quark_processes() == [job.pid]
        launched.kill(*names)
        if "child" in names:
            _child_killed(job, names)
        else:
            _child_lives(job, names)
        assert job.runs() == [job.run_folder.name], "one approval, one run"
        again = job.twin.ask("run", job.path, "--approve", job.digests["command"], "--unattended", exit=1)
        assert codes(again) == ["digest_used"] and job.runs() == [job.run_folder.name]
        assert not job.quark_processes()
        for name in {"guard", "supervisor"} - set(names):
            assert launched.gone(name), f"the {name} left with the child"
    finally:
        launched.close()


def _child_killed(job: Job, names: tuple[str, str]) -> None:
    answer = job.twin.end(job.path)
    assert (answer["liveness"], answer["verdict"]) == ("finished", "failed")
    end = _exit(job)
    assert (end["status"], end["signal"], end["stopped_by"]) == (None, 9, None)
    assert end["recorded_by"] == ("guard" if "supervisor" in names else "supervisor")
    assert task(answer, "quantize")["state"] == "failed"
    assert task(answer, "export")["state"] == "skipped" and task(answer, "export")["reason"]
    assert not job.output.exists(), "quark-cli writes nothing before its export"


def _child_lives(job: Job, names: tuple[str, str]) -> None:
    alive = job.status()
    assert (alive["liveness"], alive["verdict"]) == ("alive", "running")
    assert alive["process"]["pid"] == job.pid
    assert job.quark_processes() == [job.pid]
    _seen_by_somebody_else(job)
    _no_second_start(job)
    answer = job.twin.end(job.path)
    if set(names) == {"guard", "supervisor"}:
        # Nobody was left to see how it ended: that is what is said, whatever lies on disk.
        assert (answer["liveness"], answer["verdict"]) == ("dead", "unknown")
        assert not (job.run_folder / "exit.json").exists()
        assert answer["numbers"].keys().isdisjoint({"exit_status", "signal"})
        assert job.verify()["verdict"] == "verified", "what is there can still be told"
        return
    assert (answer["liveness"], answer["verdict"]) == ("finished", "succeeded")
    end = _exit(job)
    assert (end["status"], end["signal"]) == (0, None)
    assert end["recorded_by"] == ("guard" if "supervisor" in names else "supervisor")
    assert job.verify()["verdict"] == "verified"


def _no_second_start(job: Job) -> None:
    """While it lives nothing of the job can be started or changed."""
    for digest in (job.digests["command"], "0" * 64):
        answer = job.twin.ask("run", job.path, "--approve", digest, "--unattended", exit=1)
        assert codes(answer) == ["already_running"] and answer["pid"] is None
    blocked = job.twin.ask("command", job.path, exit=1)
    assert blocked["digest"] is None and "already_running" in blocked["blocked"]
    before = (Path(job.path) / ".quark-tui/job.json").read_bytes()
    changed = job.plan("--set", "seq_len=64", exit=1)
    assert codes(changed, "block")[0] == "already_running"
    assert (Path(job.path) / ".quark-tui/job.json").read_bytes() == before
    assert job.quark_processes() == [job.pid]


def _seen_by_somebody_else(job: Job) -> None:
    """Who does not know the job sees the command that runs."""
    stranger = replace(job.twin, changes={"QUARK_TUI_STATE": str(job.twin.cwd / "stranger")})
    (row,) = [row for row in stranger.ask("sessions")["sessions"] if row["path"] == str(job.output)]
    assert (row["verdict"], row["pid"], row["model"]) == ("running", job.pid, job.model.name)


def _exit(job: Job) -> dict[str, object]:
    return dict(json.loads((job.run_folder / "exit.json").read_text()))
