"""What breaks if this is wrong: a job runs in another environment than the one that was confirmed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quark_tui.demo.setup import Settings
from quark_tui.engine.target_choice import candidates
from tests.e2e.support.environment import borrowed
from tests.support.runs import HeldRun

from .conftest import Inside, Maker, PlainJob, codes


def _python(prefix: Path, quark: str | None = None) -> Path:
    python = prefix / "bin/python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    if quark:
        (prefix / f"lib/python3.12/site-packages/amd_quark-{quark}.dist-info").mkdir(parents=True)
    return python


def test_each_place_gives_its_interpreters_with_the_reason(tmp_path: Path) -> None:
    """P-06: what could be meant is listed with why, and nothing is started."""
    home = tmp_path / "home"
    made = {
        "VIRTUAL_ENV is set": _python(tmp_path / "active", "0.13"),
        "CONDA_PREFIX is set": _python(tmp_path / "conda"),
        "python on PATH": _python(tmp_path / "path"),
        f"a virtual environment in {home / 'venvs'}": _python(home / "venvs/b"),
        f"a virtual environment in {home / '.virtualenvs'}": _python(home / ".virtualenvs/c"),
        f"a conda environment in {home / 'miniconda3/envs'}": _python(home / "miniconda3/envs/d"),
        "named in ~/.conda/environments.txt": _python(tmp_path / "elsewhere"),
        f"a version of pyenv in {home / '.pyenv/versions'}": _python(home / ".pyenv/versions/3.12.4"),
    }
    (home / ".conda").mkdir()
    (home / ".conda/environments.txt").write_text(f"{tmp_path / 'elsewhere'}\n{tmp_path / 'gone'}\nrelative\n")
    (home / "venvs/no-environment").mkdir()
    env = {
        "HOME": str(home),
        "VIRTUAL_ENV": str(tmp_path / "active"),
        "CONDA_PREFIX": str(tmp_path / "conda"),
        "PATH": str(tmp_path / "path/bin"),
    }
    found = [one for one in candidates(env) if str(tmp_path) in one.python]
    assert {one.because: one.python for one in found} == {because: str(path) for because, path in made.items()}
    assert [one.because for one in found] == list(made)
    assert [one.quark for one in found] == ["0.13", *[None] * 7]


def test_one_environment_stands_once_for_its_nearest_reason(tmp_path: Path) -> None:
    python = _python(tmp_path / "venvs/a")
    (tmp_path / "link").symlink_to(tmp_path / "venvs/a")
    (python.parent / "python3").symlink_to("python")
    env = {"HOME": str(tmp_path), "VIRTUAL_ENV": str(tmp_path / "link"), "PATH": str(python.parent)}
    found = [one for one in candidates(env) if str(tmp_path) in one.python]
    assert [(one.python, one.because) for one in found] == [(f"{tmp_path}/link/bin/python", "VIRTUAL_ENV is set")]


def test_odd_places_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".conda").mkdir()
    os.mkfifo(tmp_path / ".conda/environments.txt")
    (tmp_path / "venvs").write_text("no folder")
    (tmp_path / "active/bin/python").mkdir(parents=True)
    env = {"HOME": str(tmp_path), "VIRTUAL_ENV": str(tmp_path / "active"), "PATH": "", "PYENV_ROOT": "/nowhere"}
    assert [one for one in candidates(env) if str(tmp_path) in one.python] == []
    assert isinstance(candidates({}), tuple)


@pytest.fixture
def other(target: Settings, tmp_path: Path) -> Path:
    """Another environment with the same packages."""
    return borrowed(target, tmp_path / "other") / "bin/python"


def _newer(python: Path, version: str) -> None:
    metadata = next(python.parent.parent.glob("lib/python3.*/site-packages/amd_quark-*.dist-info/METADATA"))
    metadata.write_text(metadata.read_text().replace("\nVersion: 0.12.post1\n", f"\nVersion: {version}\n"))


def test_another_interpreter_voids_the_plan_and_keeps_the_analysis(planned: PlainJob, other: Path) -> None:
    """P-106: the earliest checkpoint that it affects is where the job is again; nothing of it is lost."""
    assert (planned.path / "run_manifest.yaml").exists()
    answer = planned.plan("--python", str(other))
    assert (answer["analysis_confirmed"], answer["plan_confirmed"], answer["refused"]) == (True, False, False)
    record = planned.record()
    assert record["target"]["python"] == str(other)
    assert set(record["confirmations"]) == {"analysis"}
    assert record["state"]["where"] == "confirm the plan"
    assert planned.artifact("quant_plan.json")["requires_confirmation"] is True
    assert not (planned.path / "run_manifest.yaml").exists()
    assert planned.confirm("plan")["digest"]


def test_an_analysis_that_changes_with_it_is_open_again(planned: PlainJob, other: Path) -> None:
    """What the analysis says of the installed Quark is another thing with another one."""
    _newer(other, "0.13")
    answer = planned.plan("--python", str(other), exit=1)
    assert answer["analysis_confirmed"] is False
    assert planned.record()["confirmations"] == {}
    assert planned.record()["state"]["where"] == "confirm the analysis"
    assert not (planned.path / "quant_plan.json").exists()
    assert planned.confirm("analysis")["digest"] == answer["analysis_digest"]


def test_the_same_interpreter_changes_nothing(planned: PlainJob, target: Settings) -> None:
    before = planned.bytes()
    assert planned.plan("--python", str(target.python))["plan_confirmed"] is True
    assert planned.bytes() == before


def test_nothing_changes_under_a_run_that_lives(held: HeldRun, planned: PlainJob, other: Path) -> None:
    before = planned.bytes()
    assert codes(planned.plan("--python", str(other), exit=1), "block") == ["already_running"]
    assert planned.bytes() == before


def test_a_file_that_does_not_answer_is_refused(planned: PlainJob, tmp_path: Path) -> None:
    """The job keeps the interpreter that it has."""
    fake = _python(tmp_path / "fake")
    before = planned.bytes()
    answer = planned.plan("--python", str(fake), exit=1)
    assert "interpreter_unusable" in codes(answer, "block")
    assert answer["refused"] is True
    assert planned.bytes() == before
    assert planned.plan()["plan_confirmed"] is True


def test_the_option_stands_alone_and_names_a_file(planned: PlainJob, inside: Inside, other: Path) -> None:
    before = planned.bytes()
    assert "stands alone" in inside.wrong("plan", str(planned.path), "--python", str(other), "--set", "seq_len=64")
    assert "no such interpreter" in inside.wrong("plan", str(planned.path), "--python", "/nowhere/python")
    assert planned.bytes() == before


def test_a_job_whose_interpreter_is_gone_can_get_another(make: Maker, other: Path, tmp_path: Path) -> None:
    """Otherwise a removed environment would be the end of the job."""
    moved = tmp_path / "moved"
    job = make("global_scheme=fp8", "device_strategy=cpu", python=other)
    other.parent.parent.rename(moved)
    assert "interpreter_unusable" in codes(job.plan(exit=1), "block")
    job.plan("--python", str(moved / "bin/python"))
    assert job.record()["target"]["python"] == str(moved / "bin/python")
