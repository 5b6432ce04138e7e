"""Job folders: the list of those that are known, the lock between processes, and what belongs to which job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quark_tui.core.job import Job
from quark_tui.io import jobs
from quark_tui.io.artifacts import ArtifactProblem

ROOT = Path(__file__).resolve().parents[2]
JOB = Job("ptq", "2025-01-01T00:00:00Z", "/m", "/o", None, {"global_scheme": "fp8"})

HOLDER = """
import sys
from quark_tui.io import jobs
with jobs.locked(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUARK_TUI_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def made(path: Path, job: Job = JOB) -> str:
    (path / ".quark-tui").mkdir(parents=True)
    jobs.write_job(str(path), job)
    return str(path)


@contextmanager
def another_process_holding(job: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, job], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_a_job_is_written_and_read(tmp_path: Path) -> None:
    path = made(tmp_path / "job")
    assert jobs.read_job(path) == JOB and jobs.is_job(path)
    assert jobs.summary(path)["wishes"] == {"global_scheme": "fp8"}


def test_a_damaged_job_is_told_and_no_job_is_none(tmp_path: Path) -> None:
    path = made(tmp_path / "job")
    Path(jobs.job_file(path)).write_text('{"schema": "quark-tui.job.v1"}')
    with pytest.raises(ArtifactProblem, match="required"):
        jobs.read_job(path)
    with pytest.raises(FileNotFoundError):
        jobs.read_job(str(tmp_path / "none"))
    os.unlink(jobs.job_file(path))
    os.mkfifo(jobs.job_file(path))
    assert not jobs.is_job(path)
    with pytest.raises(FileNotFoundError):
        jobs.summary(path)


def test_registered_jobs_are_known_as_long_as_they_are_there(tmp_path: Path) -> None:
    names = ["one", "two", "with\nnewline", "b\udcff"]
    paths = [made(tmp_path / name) for name in names]
    assert jobs.known() == []
    for path in [*paths, paths[0]]:
        jobs.register(path)
    assert sorted(jobs.known()) == sorted(paths)
    os.unlink(jobs.job_file(paths[1]))
    assert sorted(jobs.known()) == sorted([paths[0], *paths[2:]])


def test_a_damaged_registry_costs_its_damaged_entries_only(tmp_path: Path, state: Path) -> None:
    path = made(tmp_path / "job")
    jobs.register(path)
    for number, text in enumerate(
        ["", "{", "[]", '{"path": 5}', '{"path": "\\u0000"}', '{"path": "relative"}', "[" * 60_000]
    ):
        (state / "jobs" / f"x{number}.json").write_text(text)
    (state / "jobs" / "large.json").write_text(json.dumps({"path": path, "x": "y" * (1 << 17)}))
    (state / "jobs" / "folder.json").mkdir()
    os.mkfifo(state / "jobs" / "pipe.json")
    os.symlink("nowhere", state / "jobs" / "link.json")
    assert jobs.known() == [path]


def test_the_registry_is_private(tmp_path: Path, state: Path) -> None:
    jobs.register(made(tmp_path / "job"))
    assert (state / "jobs").stat().st_mode & 0o077 == 0
    assert all(entry.stat().st_mode & 0o077 == 0 for entry in (state / "jobs").iterdir())


def test_a_job_that_another_process_holds_is_busy(tmp_path: Path) -> None:
    path = made(tmp_path / "job")
    with another_process_holding(path) as holder:
        with pytest.raises(jobs.JobBusy), jobs.locked(path, 0):
            pass
        holder.kill()
        holder.wait()
        with jobs.locked(path, 0):  # a lock does not outlive its holder
            pass


def test_a_waiting_process_gets_the_lock_when_it_is_free(tmp_path: Path) -> None:
    path = made(tmp_path / "job")
    with jobs.locked(path):
        waiting = subprocess.Popen(
            [sys.executable, "-c", HOLDER, path], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert waiting.poll() is None
    with waiting:
        assert waiting.stdout is not None and waiting.stdout.readline() == "held\n"
        waiting.kill()


def test_the_lock_is_let_go_after_an_error(tmp_path: Path) -> None:
    path = made(tmp_path / "job")
    with pytest.raises(ZeroDivisionError), jobs.locked(path, 0):
        raise ZeroDivisionError
    with jobs.locked(path, 0) as descriptor:
        assert not os.get_inheritable(descriptor)


def test_run_folders_come_oldest_first(tmp_path: Path) -> None:
    path = made(tmp_path / "job")
    assert jobs.run_folders(path) == []
    runs = tmp_path / "job" / ".quark-tui" / "runs"
    names = ["20250102T000000Z-b", "20250101T235959Z-z", "20250102T000000Z-a"]
    for name in names:
        (runs / name).mkdir(parents=True)
    (runs / "20250101T000000Z-file").write_text("no folder")
    assert [os.path.basename(folder) for folder in jobs.run_folders(path)] == sorted(names)
    assert all(os.path.isabs(folder) for folder in jobs.run_folders(path))


def test_what_belongs_to_a_job_leads_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path / "job")
    inner = made(tmp_path / "job" / "inner")
    run = tmp_path / "job" / ".quark-tui" / "runs" / "r"
    run.mkdir(parents=True)
    assert jobs.job_of(path) == path
    assert jobs.job_of(f"{path}/") == path
    assert jobs.job_of(str(run)) == path
    assert jobs.job_of(str(run / "not" / "there")) == path
    assert jobs.job_of(inner) == inner
    assert jobs.job_of(str(tmp_path)) is None and jobs.job_of("/") is None
    monkeypatch.chdir(run)
    assert jobs.job_of("output.log") == path
