"""What breaks if this is wrong: Checkpoint 3 is held against another plan or another machine than the job's."""

from __future__ import annotations

import os

import pytest

from quark_tui.engine.locate import open_job
from quark_tui.engine.readiness import environment_of, needs_of
from quark_tui.engine.situation import Situation, gather
from quark_tui.io.torch_runtime import Operation, TorchRuntime

from .conftest import Maker, PlainJob

_CPU = TorchRuntime(
    version="2.9",
    available=False,
    count=0,
    operations=(Operation(None, ""),),
    complete=True,
    status=0,
    ended="exit status 0",
    imported=True,
)


def _situation(job: PlainJob) -> Situation:
    return gather(*open_job(str(job.path)), os.environ)


def test_a_job_s_environment_is_held_against_its_plan(job: PlainJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """P-90: what the plan needs decides; what nobody tried stays unknown until torch was asked."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(job.path / "nowhere"))
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_DATASETS_CACHE"):
        monkeypatch.delenv(name, raising=False)
    situation = _situation(job)
    needs = needs_of(situation)
    assert (needs.strategy, needs.devices, needs.dataset) == ("cpu", (), "pileval")
    assert needs.output_bytes and needs.memory_bytes and needs.free_bytes
    rows = {row["name"]: row for row in environment_of(situation, os.environ).body["readiness"]}
    states = {name: row["state"] for name, row in rows.items()}
    assert states["disk"] == states["memory"] == states["torch build"] == states["amd-quark"] == "ready"
    assert states["operation"] == "unknown"
    assert states["calibration data"] == "not ready"
    assert "HF_HUB_OFFLINE" in rows["calibration data"]["value"]
    asked = {row["name"]: row for row in environment_of(situation, os.environ, _CPU).body["readiness"]}
    assert asked["operation"]["state"] == "ready"


def test_an_open_plan_leaves_its_rows_open(make: Maker) -> None:
    situation = _situation(make("global_scheme=fp8"))
    assert needs_of(situation).strategy is None
    rows = {row["name"]: row["state"] for row in environment_of(situation, os.environ).body["readiness"]}
    assert rows["memory"] != "ready" and rows["torch build"] != "ready"
