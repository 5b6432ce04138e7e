"""The program's commands within this process, on real jobs: what a script gets, without the cost of a process each."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from quark_tui.cli import main
from quark_tui.demo.setup import Settings, prepare
from tests.support.runs import HeldRun, start


@dataclass(frozen=True)
class Inside:
    """``inside(*words)`` → (exit status, stdout, stderr) of the command line, run here."""

    folder: Path

    def __call__(self, *words: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(words)
        return status, out.getvalue(), err.getvalue()

    def ask(self, command: str, *words: str, exit: int = 0) -> dict[str, Any]:
        """The JSON answer, its envelope checked."""
        status, out, err = self(command, *words, "--json")
        assert (status, err) == (exit, ""), (status, err, out[:3000])
        answer = json.loads(out)
        assert answer["schema"] == f"quark-tui.{command}.v1"
        for finding in answer["findings"]:
            assert set(finding) == {"level", "code", "message", "evidence", "next_step"}
            assert finding["level"] in ("info", "low", "medium", "high", "block") and finding["message"]
        return dict(answer)

    def wrong(self, *words: str) -> str:
        """The one line of a wrong question."""
        status, out, err = self(*words, "--json")
        assert (status, out) == (2, ""), (status, out[:3000], err)
        assert err.count("\n") == 1 and err.endswith("\n") and err[:-1].isprintable() and "Traceback" not in err
        return err.strip()


@pytest.fixture(scope="session")
def target() -> Settings:
    """The prepared environment with amd-quark 0.12.post1; the first call on a machine builds it."""
    return prepare(lambda line: sys.stderr.write(line + "\n") and None)


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inside:
    """Somebody in a folder of her own, with state and settings of her own."""
    for name in ("PWD", "VIRTUAL_ENV", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("QUARK_TUI_STATE", str(tmp_path / ".own" / "state"))
    monkeypatch.setenv("QUARK_TUI_CONFIG", str(tmp_path / ".own" / "config"))
    monkeypatch.chdir(tmp_path)
    return Inside(tmp_path)


@dataclass
class PlainJob:
    """A job made through the command line; the methods are its commands."""

    inside: Inside
    path: Path

    def plan(self, *words: str, exit: int = 0) -> dict[str, Any]:
        return self.inside.ask("plan", str(self.path), *words, exit=exit)

    def set(self, *pairs: str, exit: int = 0) -> dict[str, Any]:
        return self.plan(*[word for pair in pairs for word in ("--set", pair)], exit=exit)

    def confirm(self, checkpoint: str, *words: str, exit: int = 0) -> dict[str, Any]:
        shown = self.inside("plan", str(self.path), "--json")[1]
        digest = json.loads(shown)["analysis_digest" if checkpoint == "analysis" else "digest"]
        return self.inside.ask("confirm", str(self.path), checkpoint, "--digest", str(digest), *words, exit=exit)

    def bytes(self) -> bytes:
        return (self.path / ".quark-tui" / "job.json").read_bytes()

    def record(self) -> dict[str, Any]:
        return dict(json.loads(self.bytes()))

    def artifact(self, name: str) -> dict[str, Any]:
        return dict(json.loads((self.path / name).read_bytes()))

    def start(self, child: str | None = None) -> HeldRun:
        """A run of this job whose child waits at a gate (``child``: source of another one that does not wait)."""
        if not (self.path / "gate").exists():
            os.mkfifo(self.path / "gate")
        return start(self.path) if child is None else start(self.path, child=child, holds=False)


Maker = Callable[..., PlainJob]


@pytest.fixture
def model(tmp_path: Path, target: Settings) -> Path:
    """A small llama of this test's own."""
    copy = tmp_path / "model"
    shutil.copytree(target.models["tiny-llama"], copy)
    return copy


@pytest.fixture
def make(inside: Inside, target: Settings, model: Path) -> Maker:
    """``make(*sets, model=…, python=…)`` → a job on a small llama, nothing confirmed yet."""

    def make_it(*sets: str, model: Path = model, python: Path = target.python, exit: int = 0) -> PlainJob:
        words = [word for pair in sets for word in ("--set", pair)]
        arguments = ["--workflow", "ptq", "--model", str(model), "--python", str(python), *words]
        answer = inside.ask("new", "job", *arguments, exit=exit)
        assert answer["job"] == str(inside.folder / "job")
        return PlainJob(inside, inside.folder / "job")

    return make_it


#: A plan that a machine without GPU can carry out.
SOUND = ("global_scheme=fp8", "device_strategy=cpu", "num_calib_data=16", "seq_len=32")


@pytest.fixture
def job(make: Maker) -> PlainJob:
    """A job with a sound plan, Checkpoint 1 passed."""
    made = make(*SOUND)
    made.confirm("analysis")
    return made


@pytest.fixture
def planned(job: PlainJob) -> PlainJob:
    """A job with both checkpoints passed."""
    job.confirm("plan")
    return job


@pytest.fixture
def held(planned: PlainJob) -> Iterator[HeldRun]:
    """A run of ``planned`` whose child waits at a gate."""
    run = planned.start()
    yield run
    run.close()


def codes(answer: dict[str, Any], *levels: str) -> list[str]:
    """Codes of the findings of these levels (all where none is named)."""
    return [finding["code"] for finding in answer["findings"] if not levels or finding["level"] in levels]
