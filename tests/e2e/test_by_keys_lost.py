"""What breaks if this is wrong: a run is harmed when its screen goes away, or nobody finds back to it."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from quark_tui.demo.setup import Settings
from tests.e2e.support.by_keys import (
    Person,
    accept,
    approve,
    at_terminal,
    calibrating,
    confirm_both,
    leave,
    lose,
)
from tests.e2e.support.contracts import Contracts
from tests.e2e.support.job import Job, folder_contents
from tests.e2e.support.twin import Twin, task
from tests.e2e.test_by_keys import LONG


@pytest.fixture(scope="module")
def undisturbed(module_twin: Twin, tiny_llama: Path, target: Settings, contracts: Contracts) -> Job:
    """The same plan, run to its end without a screen."""
    job = Job(module_twin, str(module_twin.cwd / "undisturbed"), tiny_llama, str(target.python), contracts)
    job.ready(sets=LONG)
    job.run()
    assert module_twin.end(job.path)["verdict"] == "succeeded"
    return job


def _hung_up(person: Person) -> None:
    assert lose(person) == 128 + signal.SIGHUP


def _killed(person: Person) -> None:
    os.kill(person.terminal.pid, signal.SIGKILL)
    assert person.terminal.wait() == -signal.SIGKILL


def _quit(person: Person) -> None:
    told = leave(person)
    *_, program, job = shlex.split(told)
    assert program == "quark-tui" and (Path(job) / ".quark-tui" / "job.json").exists(), told
    assert "runs go on" in told


@pytest.mark.parametrize("way", [_hung_up, _killed, _quit], ids=lambda way: way.__name__.strip("_"))
def test_the_run_goes_on_and_is_found_again(
    way: Callable[[Person], None],
    undisturbed: Job,
    module_twin: Twin,
    tiny_llama: Path,
    target: Settings,
    contracts: Contracts,
) -> None:
    """In the middle of calibration the screen goes; another one stands where the run stands."""
    twin = module_twin
    job = Job(twin, str(twin.cwd / way.__name__.strip("_")), tiny_llama, str(target.python), contracts)
    job.new(*LONG)
    with at_terminal(twin.env, twin.cwd, job.path) as person:
        confirm_both(person)
        approve(person)
        person.sees("safe to disconnect")
        before = calibrating(person, 512)
        way(person)
    status = job.status()
    assert (status["liveness"], task(status, "quantize", "calibrate")["state"]) == ("alive", "active")
    pid = status["process"]["pid"]
    assert job.quark_processes() == [pid]
    with at_terminal(twin.env, twin.cwd, job.path) as person:
        person.sees_step("Run", f"pid {pid}", "» running")
        assert calibrating(person, 512) >= before
        person.sees("✓ succeeded · exit status 0", seconds=300)
        shown = accept(person)
        leave(person)
    (run,) = job.runs()
    record = json.loads((Path(job.path) / ".quark-tui" / "job.json").read_text())
    assert record["accepted"]["digest"].startswith(shown) and record["accepted"]["via"] == "screen"
    end = json.loads((Path(job.path) / ".quark-tui" / "runs" / run / "exit.json").read_text())
    assert (end["status"], end["signal"], end["recorded_by"]) == (0, None, "supervisor")
    assert folder_contents(job.output) == folder_contents(undisturbed.output)
    assert not job.quark_processes()
